#pragma once

#include <string>
#include <vector>

#include "planner/snapshot.h"

namespace verger::planner::detail {

/// Adds to a plan's notes that runs may not work now, and until when; nothing where they may.
void add_hours_note(const ClusterSnapshot& snapshot, std::vector<std::string>& notes);

}  // namespace verger::planner::detail
