#include "controller/cluster/credentials.h"

#include <fmt/format.h>

#include "engine/base/bytes.h"

namespace verger::controller {
namespace {

std::string take_line(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return std::string(line);
}

}  // namespace

Result<Credentials> CredentialDirectory::find(std::string_view name) {
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string_view::npos) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("credentials \"{}\": the name of a file in {} is expected", name,
                             directory_.string())};
  }
  const auto path = directory_ / name;
  auto content = read_file(files_, path, 4'096);
  if (!content) {
    auto error = content.error().within(fmt::format("credentials \"{}\"", name));
    error.message += "; vergerd reads the user from its first line, the password from its second";
    return error;
  }
  auto text = as_text(*content);
  Credentials out;
  out.user = take_line(text);
  out.password = take_line(text);
  if (out.user.empty() || out.password.empty()) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: the first line must be the user, the second the password", path.string())};
  }
  out.warning = exposed_secret(files_, path);
  if (out.warning.empty()) {
    warned_of_.erase(std::string(name));
  } else if (warned_of_.insert(std::string(name)).second) {
    log_.warning(out.warning, {{"credentials", std::string(name)}});
  }
  return out;
}

}  // namespace verger::controller
