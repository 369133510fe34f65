#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::growth {

/// New nodes, seeded from a backup: planner::GrowthPolicy::operation.
const OperationModule& growth_module();

/// Of a run that has ended: whether the node is a member, and what an operator has to do.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::growth
