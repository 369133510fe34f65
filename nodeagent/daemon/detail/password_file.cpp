#include "nodeagent/daemon/detail/password_file.h"

#include "engine/base/bytes.h"
#include "engine/base/private_file.h"

namespace verger::agent {

Result<std::string> read_password_file(const std::string& path) {
  constexpr std::uint64_t kMost = 4'096;
  VERGER_RETURN_IF_ERROR(check_private_file(path));
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), path, kMost));
  const auto text = as_text(bytes);
  const auto line = text.substr(0, text.find_first_of("\r\n"));
  if (line.empty()) {
    return Error{Errc::kInvalidArgument, path + ": its first line, the password, is empty"};
  }
  return std::string(line);
}

}  // namespace verger::agent
