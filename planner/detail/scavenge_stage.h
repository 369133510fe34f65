#pragma once

#include <string_view>
#include <vector>

#include "planner/detail/scavenge_order.h"
#include "planner/make_plan.h"

namespace verger::planner::detail {

/// A stage that scavenges one node, and what the node will meet in it.
struct NodeStage {
  Stage stage;
  NodeForecast forecast;
};

/// From this node's own history of steps of that kind, or from the size of its database and the
/// bytes that are rewritten per millisecond the first time.
DurationRange expected_scavenge(const History& history, const NodeSnapshot& node,
                                std::string_view kind = "scavenge",
                                std::int64_t slow_bytes_per_ms = 5'000);
/// The node serves on meanwhile. An unfinished or unreached older point gets a step of its own.
NodeStage scavenge_stage(const ScavengeOrder& order, const History& history,
                         const NodeSnapshot& node);

}  // namespace verger::planner::detail
