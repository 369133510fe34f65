#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan.h"
#include "planner/scavenge/scavenge_estimates.h"
#include "planner/scavenge/scavenge_policy.h"
#include "planner/snapshot.h"

namespace verger::planner::detail {

/// How one node is scavenged.
enum class ScavengeWay : std::uint8_t {
  kServer,   ///< by the server itself, while it serves
  kOnline,   ///< by its agent, which switches the new chunks into the running server
  kOffline,  ///< by its agent, while the server is stopped
};
std::string_view to_string(ScavengeWay way);

/// The way, and why that one.
struct ChosenWay {
  ScavengeWay way = ScavengeWay::kServer;
  std::string reason{};   ///< for people; part of plans' hashes, so without sizes
  std::string measure{};  ///< what was seen of sizes; not part of hashes
};

/// What stands against a way on one node: code and hint of a refusal.
struct Obstacle {
  std::string code;
  std::string message;  ///< "it has no agent"
  std::string hint;
};
/// Of the switching of chunks into its running server.
std::vector<Obstacle> online_obstacles(const NodeSnapshot& node, const ScavengePolicy& wanted);
/// Of a scavenge of its files while it is stopped, as far as the node itself is concerned.
std::vector<Obstacle> offline_obstacles(const NodeSnapshot& node);

/// As the policy's strategy says; where it is `auto`: by what stands against each way, and by how
/// much a scavenge would remove. Where its agent has no estimate of that: by how much was written
/// since the node's last scavenge. `may_stop`: the cluster can do without the node for a while, and
/// it does not lead then. `estimate`: nullptr: there was none to be had.
ChosenWay choose_way(const NodeSnapshot& node, const ScavengePolicy& wanted, bool may_stop,
                     const NodeEstimate* estimate);

}  // namespace verger::planner::detail
