#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "planner/plan.h"
#include "planner/scavenge/scavenge_way.h"
#include "planner/snapshot.h"

namespace verger::planner::detail {

/// Who is scavenged, in which order, and who makes the point that all share. The pointers are into
/// `snapshot`, whose nodes are sorted by name; it and `policy` outlive this.
struct ScavengeOrder {
  ScavengeOrder(const ClusterSnapshot& seen, const Policy& wanted);

  const ClusterSnapshot& snapshot;
  const Policy& policy;
  const ScavengePolicy& scavenge;  ///< the operation's part of it
  std::optional<Point> latest;     ///< the log's newest point
  std::size_t voters;
  std::vector<const NodeSnapshot*> followers;  ///< voters; the most lagging last
  std::vector<const NodeSnapshot*> replicas;   ///< as far as the policy includes them
  const NodeSnapshot* leader = nullptr;
  const NodeSnapshot* creator = nullptr;  ///< of the new point; nullptr before choose_creator()

  /// What must hold before a priority is lowered, before a leader resigns, ...
  std::vector<Gate> move_gates;
  std::vector<Gate> resign_gates;
  /// ... and before a node is scavenged.
  [[nodiscard]] const std::vector<Gate>& scavenge_gates(const NodeSnapshot& node) const {
    const auto& gates = way(node).way == ScavengeWay::kOffline ? stopping_gates_ : serving_gates_;
    return node.read_only_replica ? gates.replica : gates.voter;
  }
  /// How the node is scavenged.
  [[nodiscard]] const ChosenWay& way(const NodeSnapshot& node) const;
  /// The point that all share is made before any node's turn: the first may be unable to make it.
  [[nodiscard]] bool makes_point_first() const;

  /// ... and before a node's log is read for a digest.
  [[nodiscard]] const std::vector<Gate>& digest_gates() const { return digest_gates_; }

  /// Of those in whose turn it makes sense, one that may make the new point at once; it goes
  /// first.
  void choose_creator();
  [[nodiscard]] bool includes_leader() const;
  [[nodiscard]] bool moves_leader() const;
  /// All that are scavenged, in order.
  [[nodiscard]] std::vector<const NodeSnapshot*> included() const;
  /// True where the node is seen to be done with the log's latest point, or where there is none.
  [[nodiscard]] bool done_with_latest(const NodeSnapshot& node) const;
  /// Voters that may be gone before the quorum is, while this node is worked on.
  [[nodiscard]] std::int32_t margin(const NodeSnapshot& node) const;
  /// Below that of every other voter, and below 0: with it each of them wins before the node.
  [[nodiscard]] std::int32_t losing_priority(const NodeSnapshot& node) const;

 private:
  struct NodeGates {
    std::vector<Gate> voter;
    std::vector<Gate> replica;
  };
  void choose_ways();
  void list_gates();
  [[nodiscard]] NodeGates node_gates(std::vector<Gate> cluster_gates, bool stops) const;

  std::map<const NodeSnapshot*, ChosenWay> ways_;  ///< of all that are included
  NodeGates serving_gates_;                        ///< of a node that serves meanwhile
  NodeGates stopping_gates_;                       ///< of one that is stopped
  std::vector<Gate> digest_gates_;
  std::vector<std::int32_t> priorities_;  ///< of the voters, lowest first
};

}  // namespace verger::planner::detail
