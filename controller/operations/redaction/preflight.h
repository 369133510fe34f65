#pragma once

#include <memory>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

namespace verger::controller::redactions {

/// Where backups are to be deleted: asks each agent for its repositories, and refuses a name that
/// none has. Its facts: {"repositories": {NODE: ID}}, of those that have it; an id is empty before
/// the first backup.
net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings);

}  // namespace verger::controller::redactions
