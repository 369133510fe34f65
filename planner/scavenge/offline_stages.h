#pragma once

#include "planner/scavenge/scavenge_order.h"
#include "planner/scavenge/scavenge_stage.h"

namespace verger::planner::detail {

/// The point that all nodes share, before the first node's turn: the log's latest where no node has
/// reached it yet, else a new one, by a start on the order's creator that is stopped at once.
Stage point_stage(const ScavengeOrder& order);
/// Stops the node, scavenges its files up to the shared point, starts it and sees it catch up.
/// Undone by starting it.
NodeStage offline_stage(const ScavengeOrder& order, const History& history,
                        const NodeSnapshot& node);
/// Has the node's agent scavenge beside the running server, up to the shared point, and switch the
/// new chunks into it.
NodeStage online_stage(const ScavengeOrder& order, const History& history,
                       const NodeSnapshot& node);

}  // namespace verger::planner::detail
