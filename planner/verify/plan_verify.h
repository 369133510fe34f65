#pragma once

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// One node after the other, read only; `snapshot.nodes` is sorted by name. Fills everything but
/// basis and hash.
std::expected<Plan, std::vector<Refusal>> plan_verify(const ClusterSnapshot& snapshot,
                                                      const Policy& policy, const History& history);

}  // namespace verger::planner::detail
