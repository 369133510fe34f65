#pragma once

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// Followers, replicas, then the leader after it resigned: those that have lost streams, or are
/// named. `snapshot.nodes` is sorted by name. Fills everything but basis and hash.
std::expected<Plan, std::vector<Refusal>> plan_heal(const ClusterSnapshot& snapshot,
                                                    const Policy& policy, const History& history);

}  // namespace verger::planner::detail
