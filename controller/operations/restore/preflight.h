#pragma once

#include <memory>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

namespace verger::controller::cluster_restore {

/// Asks the agents of the nodes for the backup, for room, and whether they can stop their servers.
/// "latest" becomes a backup here: planner::RestoreFacts.
net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings);

}  // namespace verger::controller::cluster_restore
