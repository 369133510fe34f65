#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::redactions {

/// Events are blanked on every node of a cluster: planner::RedactionPolicy::operation.
const OperationModule& redaction_module();

/// Of a run that has ended: the erasure report. Nothing of what the events held is in it.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::redactions
