#include "controller/daemon/agents_token.h"

#include <fmt/format.h>

#include "engine/base/private_file.h"
#include "engine/base/secret.h"

namespace verger::controller {
namespace {

constexpr std::uint64_t kTokenFileBytes = 4096;
constexpr std::size_t kLeastTokenLength = 20;

}  // namespace

Result<std::string> open_or_make_agents_token(const Path& file, Random& random) {
  const auto made = write_private_file(
      file, fmt::format("vergeragents_{}\n", make_secret(random).secret), IfThere::kRefuse);
  if (!made && made.error().code != Errc::kExists) {
    return made.error();
  }
  VERGER_RETURN_IF_ERROR(check_private_file(file));
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), file, kTokenFileBytes));
  const auto text = as_text(bytes);
  std::string token(text.substr(0, text.find_first_of("\r\n")));
  if (token.size() < kLeastTokenLength) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: its first line has to be a token of {} characters or more; "
                             "remove the file to have a new one made",
                             file.string(), kLeastTokenLength)};
  }
  return token;
}

}  // namespace verger::controller
