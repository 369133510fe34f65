#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::healing {

/// Nodes that have lost streams get a new existence filter.
const OperationModule& heal_module();

/// Of a run that has ended, from what its steps saw.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::healing
