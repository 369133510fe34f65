#include "engine/streams/find_scavenge_point.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::streams {

Result<ScavengePoint> find_scavenge_point(std::span<const ScavengePoint> points,
                                          std::int64_t number) {
  const auto found = std::ranges::find(
      points, number, [](const ScavengePoint& point) { return point.number.value(); });
  if (found != points.end()) {
    return *found;
  }
  return Error{Errc::kNotFound,
               points.empty()
                   ? fmt::format("scavenge point {} is not in the log, which holds none", number)
                   : fmt::format("scavenge point {} is not in the log; it holds {} to {}", number,
                                 points.front().number, points.back().number)};
}

}  // namespace verger::streams
