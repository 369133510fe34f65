#include "controller/daemon/bootstrap_token_file.h"

#include "engine/base/private_file.h"
#include "engine/base/secret.h"

namespace verger::controller {
namespace {

constexpr std::uint64_t kBootstrapFileBytes = 4096;
constexpr std::size_t kLeastBootstrapLength = 32;

}  // namespace

/// Of an earlier start; empty where there is none that can be trusted.
std::string BootstrapTokenFile::kept() const {
  if (!check_private_file(file_)) {
    return {};
  }
  const auto bytes = read_file(posix_file_system(), file_, kBootstrapFileBytes);
  if (!bytes) {
    return {};
  }
  const auto text = as_text(*bytes);
  const std::string line(text.substr(0, text.find_first_of("\r\n")));
  return line.starts_with(kBootstrapTokenMark) && line.size() >= kLeastBootstrapLength
             ? line
             : std::string();
}

Result<std::string> BootstrapTokenFile::take() {
  auto token = kept();
  if (token.empty()) {
    token = std::string(kBootstrapTokenMark) + make_secret(random_).secret;
    VERGER_RETURN_IF_ERROR(write_private_file(file_, token + '\n', IfThere::kReplace));
  }
  log_.info("no token has been created yet: the API accepts the bootstrap token alone",
            {{"file", file_.string()}, {"do", "verger token create NAME --role admin"}});
  return token;
}

void BootstrapTokenFile::drop() {
  const auto removed = posix_file_system().remove(file_);
  if (removed) {
    log_.info("the bootstrap token is not valid any longer and was removed",
              {{"file", file_.string()}});
  } else if (removed.error().code != Errc::kNotFound) {
    log_.warning("the bootstrap token is not valid any longer; remove its file by hand",
                 {{"file", file_.string()}, {"error", removed.error().message}});
  }
}

}  // namespace verger::controller
