#include "controller/cli/bootstrap_token.h"

#include <array>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "engine/base/secret.h"
#include "engine/base/unique_fd.h"

namespace verger::cli {
namespace {

constexpr std::string_view kMark = "verger_bootstrap_";

/// The first line of a regular file that only its owner may read; else empty.
std::string first_line_of_private_file(const std::string& path) {
  // Neither a link nor a pipe: the name comes from the other end.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat seen{};
  if (!fd.valid() || ::fstat(fd.get(), &seen) != 0 || !S_ISREG(seen.st_mode) ||
      (seen.st_mode & 077U) != 0) {
    return {};
  }
  std::array<char, 512> bytes{};
  const auto got = ::read(fd.get(), bytes.data(), bytes.size());
  const std::string text(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

std::optional<std::string> bootstrap_token_for(const http::Response& refusal,
                                               const std::string& nonce) {
  if (refusal.status != 401) {
    return std::nullopt;
  }
  const auto body = nlohmann::json::parse(refusal.body, nullptr, false);
  if (!body.is_object()) {
    return std::nullopt;
  }
  const auto file = text_of(body, "bootstrap_token_file");
  if (file.empty()) {
    return std::nullopt;
  }
  auto token = first_line_of_private_file(file);
  if (!token.starts_with(kMark) ||
      !equal_in_constant_time(hmac_sha256(token, nonce), text_of(body, "bootstrap_token_proof"))) {
    return std::nullopt;
  }
  return token;
}

}  // namespace verger::cli
