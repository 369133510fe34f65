#pragma once

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace verger::controller::detail {

/// Fewer digits could soon mean something else.
inline constexpr std::size_t kShortestPrefix = 8;

/// The one key of the sorted `maps` that is `text`, or begins with it where that is long enough.
/// `what` names in messages what the keys stand for, `list` the command that shows them. Errors:
/// kNotFound; kConflict: it does not name one.
template <class... Maps>
Result<std::string> find_by_prefix(std::string_view what, std::string_view list,
                                   std::string_view text, const Maps&... maps) {
  std::vector<std::string> found;
  const auto look = [&](const auto& map) {
    for (auto each = map.lower_bound(text); each != map.end() && each->first.starts_with(text);
         ++each) {
      if (each->first == text) {
        found = {each->first};
        return true;
      }
      found.push_back(each->first);
    }
    return false;
  };
  const bool exact = !text.empty() && (look(maps) || ...);
  if (found.empty()) {
    return Error{Errc::kNotFound,
                 fmt::format("there is no {} {}; `{}` shows them", what, text, list)};
  }
  if (!exact && (text.size() < kShortestPrefix || found.size() > 1)) {
    return Error{Errc::kConflict, fmt::format("{} is too short to name one {}; give more digits, "
                                              "at least {}",
                                              text, what, kShortestPrefix)};
  }
  return found.front();
}

}  // namespace verger::controller::detail
