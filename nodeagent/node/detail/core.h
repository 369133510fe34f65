#pragma once

#include <memory>

#include "nodeagent/node/detail/election_driver.h"
#include "nodeagent/node/detail/gossip_service.h"
#include "nodeagent/node/detail/node_context.h"
#include "nodeagent/node/memory_streams.h"

namespace verger::node {

class Authenticator;
class Following;
class Leadership;
class PersistentSubscriptions;
class Scavenger;

/// A node: its parts, put together. Each part has its header, and knows the context and, of the
/// other parts, those its constructor takes; routes and services look at all of them from here.
///
///   gossip <- election <- leadership, following
///                 |             ^
///                 +- by way of ElectionConsequences
///
/// It lives as long as one of its coroutines does; the node's owner ends it with abandon().
class Core final : public NodeContext, private ElectionConsequences {
 public:
  Core(NodeOptions node_options, NodeEnvironment environment,
       std::unique_ptr<streams::Database> database);
  ~Core() override;

  void start(NodeAddresses node_addresses);
  /// No new work is taken; what runs may end.
  void begin_stop();
  /// After it nothing more of this node happens.
  void abandon();
  void fail(const Error& error) override;
  std::shared_ptr<Core> shared_from_this() { return keep(*this); }

  const std::unique_ptr<GossipService> gossip;
  const std::unique_ptr<ElectionDriver> election;
  const std::unique_ptr<Leadership> leadership;
  const std::unique_ptr<Following> following;
  const std::unique_ptr<Authenticator> authenticator;
  const std::unique_ptr<PersistentSubscriptions> subscriptions;
  MemoryStreams memory_streams;
  std::unique_ptr<Scavenger> scavenger;  ///< from the start on
  int requests = 0;                      ///< being answered

 private:
  void follow(const LeaderInfo& leader) override;
  void stop_following() override;
  void prepare_to_lead(EpochNumber term) override;
  void drain() override;
  void stop_leading() override;
  void state_changed(api::NodeState state) override;

  static net::awaitable<void> tick_loop(std::shared_ptr<Core> core);
  void tick();
  void save_checkpoints();
  void look_at_gossip();
  Monotonic checkpoints_due_{0};
  Monotonic gossip_look_due_{0};
  bool publishes_chaser_ = true;  ///< not after a failure, until the checkpoints are due
};

}  // namespace verger::node
