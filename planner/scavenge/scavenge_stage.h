#pragma once

#include <string_view>
#include <vector>

#include "planner/make_plan.h"
#include "planner/scavenge/scavenge_order.h"

namespace verger::planner::detail {

/// A stage that scavenges one node, and what the node will meet in it.
struct NodeStage {
  Stage stage;
  NodeForecast forecast;
};

/// What the duration of a scavenge depends on, besides its node.
struct ScavengePace {
  std::string_view kind = "scavenge";      ///< of the step
  std::int64_t slow_bytes_per_ms = 5'000;  ///< rewritten at least, without rests
  std::int64_t throttle_percent = 100;     ///< share of the time in which it works
  /// What the step does besides; a history of such steps has it already.
  DurationRange around{};
};

/// From this node's own history of steps of that kind, or from the size of its database the first
/// time.
DurationRange expected_scavenge(const History& history, const NodeSnapshot& node,
                                const ScavengePace& pace);
/// The share of the time in which a scavenge of this node may work, as its policy says.
std::int64_t throttle_of(const ScavengeOrder& order, const NodeSnapshot& node);
/// Threads with which the node is scavenged.
std::int32_t threads_of(const ScavengeOrder& order, const NodeSnapshot& node);
/// The node serves on meanwhile. An unfinished or unreached older point gets a step of its own.
NodeStage scavenge_stage(const ScavengeOrder& order, const History& history,
                         const NodeSnapshot& node);

}  // namespace verger::planner::detail
