#pragma once

#include <memory>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

namespace verger::controller::scavenge {

/// Of the strategy auto: what a scavenge of each node would remove, as its agent counts it, for
/// half a minute at most. Facts: planner::ScavengeEstimates.
net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings);

}  // namespace verger::controller::scavenge
