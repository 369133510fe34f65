#pragma once

#include "controller/executor/detail/run_context.h"

/// What a look shows beyond the step that it was made for: a move of the leader is recorded, and
/// alerts are raised and cleared of servers that stay down and of nodes that do not answer. Throw
/// Stopped and JournalTrouble.
namespace verger::controller::detail {

void track_cluster(RunContext& run, const planner::ClusterSnapshot& snapshot);
/// The alerts of one node alone.
void track_node(RunContext& run, const planner::NodeSnapshot& node);

}  // namespace verger::controller::detail
