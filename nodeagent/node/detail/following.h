#pragma once

#include <memory>

#include "nodeagent/node/detail/election_driver.h"
#include "nodeagent/node/detail/gossip_service.h"
#include "nodeagent/node/detail/node_context.h"

namespace verger::node {

/// This node as a follower: its one link to a leader, by which the log comes
/// (docs/formats/replication.md).
class Following {
 public:
  Following(NodeContext& context, GossipService& gossip, ElectionDriver& election);
  ~Following();
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;

  /// Connects to this leader and subscribes, instead of to any other. The election hears how the
  /// link stands, and when it is lost.
  void follow(const LeaderInfo& leader);
  /// Nothing more is acknowledged to the leader.
  void stop();
  /// Call it with the node's ticks: closes a link that has been silent for too long.
  void tick();

  /// There is a leader to follow, reached or not.
  [[nodiscard]] bool has_link() const { return link_ != nullptr; }
  /// The leader that this node is connected with; nullptr: none.
  [[nodiscard]] const LeaderInfo* connected_leader() const;

 private:
  class Link;
  /// The node serves, and this is its link still.
  [[nodiscard]] bool holds(const Link& link) const;
  static net::awaitable<void> run(std::shared_ptr<Following> following, std::shared_ptr<Link> link);

  NodeContext& context_;
  GossipService& gossip_;
  ElectionDriver& election_;
  std::shared_ptr<Link> link_;
};

}  // namespace verger::node
