#pragma once

#include <vector>

#include "planner/detail/scavenge_order.h"
#include "planner/make_plan.h"

namespace verger::planner::detail {

/// Every reason why there can be no plan now, sorted; empty: there can.
std::vector<Refusal> scavenge_refusals(const ScavengeOrder& order, const History& history);

}  // namespace verger::planner::detail
