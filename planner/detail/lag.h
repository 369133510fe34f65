#pragma once

#include <cstdint>

#include "planner/snapshot.h"

namespace verger::planner::detail {

/// ClusterSnapshot::lag where the leader is known already; nullptr: there is none.
std::int64_t lag_behind(const NodeSnapshot* leader, const NodeSnapshot& node);

}  // namespace verger::planner::detail
