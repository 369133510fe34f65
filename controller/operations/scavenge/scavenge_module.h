#pragma once

#include "controller/operations/operation_module.h"

namespace verger::controller::scavenge {

const OperationModule& scavenge_module();

/// What the run showed: nodes, points, digests, moves of the leader. In report.cpp.
nlohmann::json report(const RunState& run, nlohmann::json timeline);

}  // namespace verger::controller::scavenge
