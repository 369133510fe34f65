#pragma once

#include <vector>

#include "planner/detail/scavenge_order.h"
#include "planner/make_plan.h"

namespace verger::planner::detail {

/// A stage that scavenges one node, and what the node will meet in it.
struct NodeStage {
  Stage stage;
  NodeForecast forecast;
};

/// What must hold before a node is scavenged.
std::vector<Gate> scavenge_gates(const ScavengeOrder& order, const NodeSnapshot& node);
/// From this node's own history, or from the size of its database the first time.
DurationRange expected_scavenge(const History& history, const NodeSnapshot& node);
/// The node serves on meanwhile. An unfinished or unreached older point gets a step of its own.
NodeStage scavenge_stage(const ScavengeOrder& order, const History& history,
                         const NodeSnapshot& node);

}  // namespace verger::planner::detail
