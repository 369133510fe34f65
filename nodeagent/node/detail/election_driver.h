#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/http/message.h"
#include "nodeagent/node/detail/gossip_service.h"
#include "nodeagent/node/detail/node_context.h"
#include "nodeagent/node/election.h"

namespace verger::node {

/// What an election has the rest of the node do (election.h describes each effect).
class ElectionConsequences {
 public:
  virtual ~ElectionConsequences() = default;
  virtual void follow(const LeaderInfo& leader) = 0;
  virtual void stop_following() = 0;
  virtual void prepare_to_lead(EpochNumber term) = 0;
  virtual void drain() = 0;
  virtual void stop_leading() = 0;
  virtual void state_changed(api::NodeState state) = 0;
};

/// Between the election's state machine and the world: effects out, messages, reports and time in.
class ElectionDriver {
 public:
  ElectionDriver(NodeContext& context, GossipService& gossip, ElectionConsequences& consequences);

  /// Once the node has its name.
  void start();
  /// Call it with the node's ticks.
  void tick();

  /// Initializing before the start, ShutDown once the node serves no more.
  [[nodiscard]] api::NodeState state() const;
  [[nodiscard]] EpochNumber term() const { return election_->term(); }
  [[nodiscard]] bool leads(EpochNumber term) const { return election_->leads(term); }
  /// This node, or the leader it has a living link to or is connecting to.
  [[nodiscard]] std::optional<NodeId> leader() const;
  /// Whom this node followed, or itself: kept when there is no leader any longer.
  [[nodiscard]] const std::optional<NodeId>& last_leader() const { return last_leader_; }
  /// What this node reports of itself.
  [[nodiscard]] Member describe_self() const;

  // --- Reports of the other parts ---
  /// The log was changed by something else than time and messages.
  void refresh_log();
  /// The epoch of `term` is committed.
  void epoch_committed(EpochNumber term);
  /// The link to the leader of `term` changed.
  void link_changed(EpochNumber term, LinkState link);
  /// While leading: other voters with a living subscription.
  void subscribed_voters(int count);
  /// No write is in flight any longer, after drain().
  void drained();

  // --- Wishes of a person ---
  void resign();
  void shut_down();
  /// In gossip from the next round on.
  void set_priority(std::int32_t priority) { election_->set_priority(priority); }

  /// The answer to POST /verger/v1/election.
  http::Response answer(const std::string& body);

 private:
  void apply(const Effects& effects);
  void on(const effect::PersistTerm& persist);
  void on(const effect::Send& send);
  void on(const effect::StopFollowing& stop);
  void on(const effect::Follow& follow);
  void on(const effect::PrepareToLead& prepare);
  void on(const effect::StopLeading& stop);
  void on(const effect::Drain& drain);
  void on(const effect::StateChanged& change);
  /// What NodeMisbehaviour does with an election that was won.
  void misbehave_as_leader();

  /// Answers meant for the sender go into `replies`; without it they are sent as messages.
  void receive(const ElectionMessage& message, std::vector<ElectionMessage>* replies);
  static net::awaitable<void> post(std::shared_ptr<ElectionDriver> driver, ElectionMessage message);
  static net::awaitable<void> give_up_lead(std::shared_ptr<ElectionDriver> driver);
  [[nodiscard]] LogState log_state() const;
  [[nodiscard]] Uuid last_epoch_leader() const;

  NodeContext& context_;
  GossipService& gossip_;
  ElectionConsequences& consequences_;
  std::unique_ptr<Election> election_;
  std::optional<NodeId> last_leader_;
  /// What it was before a resignation that this node is to win (NodeMisbehaviour).
  std::optional<std::int32_t> priority_after_election_;

  /// While a message is received whose sender gets answers at once.
  std::vector<ElectionMessage>* replies_ = nullptr;
  NodeId replying_to_;
};

}  // namespace verger::node
