#pragma once

#include <memory>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

namespace verger::controller::resize {

/// Asks all agents for their servers' configuration files, and those of new nodes what a growth
/// asks: planner::ResizeFacts.
net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings);

}  // namespace verger::controller::resize
