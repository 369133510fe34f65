#pragma once

#include <memory>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

namespace verger::controller::backups {

/// Asks each agent for its repositories, and one of each for what is in the policy's. Its facts are
/// planner::BackupFacts.
net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings);

}  // namespace verger::controller::backups
