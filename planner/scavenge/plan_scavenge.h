#pragma once

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// The rolling scavenge. `snapshot.nodes` is sorted by name. Fills everything but basis and hash.
std::expected<Plan, std::vector<Refusal>> plan_scavenge(const ClusterSnapshot& snapshot,
                                                        const Policy& policy,
                                                        const History& history);

}  // namespace verger::planner::detail
