#include "controller/daemon/bootstrap_token_file.h"

#include <fmt/format.h>

#include "engine/base/private_file.h"
#include "engine/base/secret.h"

namespace verger::controller {
namespace {

constexpr std::uint64_t kBootstrapFileBytes = 4096;
constexpr std::size_t kLeastBootstrapLength = 32;
constexpr std::string_view kFirstTokenMark = "verger_";

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

Result<std::optional<FirstToken>> BootstrapTokenFile::first() {
  return first_.empty() ? Result<std::optional<FirstToken>>(std::optional<FirstToken>())
                        : FirstTokenFile::read(first_);
}

Result<void> FirstTokenFile::make(const Path& file, std::string_view name, Random& random) {
  const auto made = make_secret(random);
  return write_private_file(
      file, fmt::format("{}{}_{}\n{}\n", kFirstTokenMark, made.id, made.secret, name),
      IfThere::kRefuse);
}

Result<std::optional<FirstToken>> FirstTokenFile::read(const Path& file) {
  VERGER_TRY(const bool there, posix_file_system().exists(file));
  if (!there) {
    return std::optional<FirstToken>();
  }
  VERGER_RETURN_IF_ERROR(check_private_file(file));
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), file, kBootstrapFileBytes));
  auto rest = as_text(bytes);
  const auto next_line = [&rest] {
    const auto end = rest.find('\n');
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return line;
  };
  auto text = next_line();
  const auto name = next_line();
  const bool marked = text.starts_with(kFirstTokenMark);
  text.remove_prefix(marked ? kFirstTokenMark.size() : 0);
  const auto end = text.find('_');
  if (!marked || end == std::string_view::npos || end == 0 ||
      text.size() < end + kLeastBootstrapLength) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: there is no token of `vergerd init` in it; remove it, and run "
                             "`vergerd init` again",
                             file.string())};
  }
  return std::optional(FirstToken{.name = name.empty() ? "admin" : std::string(name),
                                  .id = std::string(text.substr(0, end)),
                                  .secret = std::string(text.substr(end + 1))});
}

}  // namespace verger::controller
