#include "engine/index/detail/latest_before.h"

#include <algorithm>

#include "engine/index/detail/ptable_format.h"

namespace verger::index::detail {

SearchRange search_range(const TableRun& run) {
  if (run.entries < 2 || run.midpoints < 2) {
    return {.low = 0, .high = run.entries == 0 ? 0 : run.entries - 1};
  }
  const auto entry_of = [&run](std::uint64_t midpoint) {
    return midpoint_entry(midpoint, run.entries, run.midpoints);
  };
  const auto last = run.midpoints - 1;
  const auto near = [&](std::uint64_t entry) {
    const auto share = static_cast<double>(entry) / static_cast<double>(run.entries - 1);
    return std::min(last, static_cast<std::uint64_t>(share * static_cast<double>(last)));
  };
  // The last midpoint before the run.
  auto below = near(run.first);
  while (below > 0 && entry_of(below) >= run.first) {
    --below;
  }
  while (below < last && entry_of(below + 1) < run.first) {
    ++below;
  }
  // The first one behind it.
  auto above = near(run.end);
  while (above > 0 && entry_of(above - 1) >= run.end) {
    --above;
  }
  while (above < last && entry_of(above) < run.end) {
    ++above;
  }
  return {.low = entry_of(below), .high = entry_of(above)};
}

}  // namespace verger::index::detail
