#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::certificate_change {

const OperationModule& certificates_module();

/// What the run showed: serials before and after, how long the nodes differed, proofs, and what was
/// undone. In report.cpp.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::certificate_change
