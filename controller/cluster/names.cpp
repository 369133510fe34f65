#include "controller/cluster/names.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::controller {

Result<void> check_name(std::string_view what, std::string_view name) {
  const bool good = !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
  if (!good) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{} \"{}\": 1 to 100 letters, digits, '-', '_', '.', ':'", what, name)};
  }
  return {};
}

}  // namespace verger::controller
