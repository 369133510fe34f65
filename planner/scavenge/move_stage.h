#pragma once

#include <optional>
#include <string>

#include "planner/scavenge/scavenge_order.h"

namespace verger::planner::detail {

/// Lowers the node's priority, makes it resign, restores the priority: all of it or nothing. With
/// `if_deferred` it is done only before the second turn of the stage of that id.
Stage move_stage(const ScavengeOrder& order, const NodeSnapshot& node, std::string if_deferred);
/// After it: what the move stage noted is compared with what the new leader runs. Nothing where the
/// policy does not want it. It fails no run.
std::optional<Stage> work_stage(const ScavengeOrder& order, const NodeSnapshot& node,
                                std::string if_deferred);

}  // namespace verger::planner::detail
