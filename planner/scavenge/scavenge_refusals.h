#pragma once

#include <vector>

#include "planner/make_plan.h"
#include "planner/scavenge/scavenge_order.h"

namespace verger::planner::detail {

/// Every reason why there can be no plan now, sorted; empty: there can.
std::vector<Refusal> scavenge_refusals(const ScavengeOrder& order, const History& history);

}  // namespace verger::planner::detail
