#pragma once

#include <vector>

#include "planner/certificates/rollout_order.h"
#include "planner/plan.h"

namespace verger::planner::detail {

/// Every reason why there can be no rollout now, besides those that the preflight found; sorted.
/// Without facts (the preflight could not tell) only those that need none.
std::vector<Refusal> certificate_refusals(const RolloutOrder& order);

}  // namespace verger::planner::detail
