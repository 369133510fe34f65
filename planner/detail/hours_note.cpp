#include "planner/detail/hours_note.h"

#include <fmt/format.h>

#include "engine/base/clock.h"

namespace verger::planner::detail {

void add_hours_note(const ClusterSnapshot& snapshot, std::vector<std::string>& notes) {
  if (snapshot.hours && !snapshot.hours->open) {
    notes.push_back(fmt::format(
        "closed now ({}); a run waits until {}", snapshot.hours->reason,
        snapshot.hours->until ? format_ticks(*snapshot.hours->until) : "further notice"));
  }
}

}  // namespace verger::planner::detail
