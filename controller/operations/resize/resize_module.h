#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::resize {

/// Another number of voters: planner::ResizePolicy::operation.
const OperationModule& resize_module();

/// Of a run that has ended: how many voters there are, and what an operator has to do.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::resize
