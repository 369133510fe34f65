#pragma once

#include <memory>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

namespace verger::controller::growth {

/// Asks the new node's agent for the backup, for room and for its database, and has it open
/// connections to the members with the new node's certificate: planner::RestoreFacts of that node.
net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings);

}  // namespace verger::controller::growth
