#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::cluster_restore {

/// Restores of nodes and of whole clusters: planner::RestorePolicy::operation.
const OperationModule& restore_module();

/// Of a run that has ended: where each node is, and what an operator has to do.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::cluster_restore
