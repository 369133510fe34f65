#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::verifications {

/// The files of running nodes, verified by their agents.
const OperationModule& verify_module();

/// Of a run that has ended, from what its steps saw.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::verifications
