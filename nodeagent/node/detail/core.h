#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/streams/event_store.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/node/detail/notifier.h"
#include "nodeagent/node/election.h"
#include "nodeagent/node/gossip.h"
#include "nodeagent/node/node.h"

namespace verger::node {

class Authenticator;
class Scavenger;

/// A write on the leader that waits for its majority.
struct CommitWaiter {
  LogPosition end;
  bool committed = false;
  /// Leadership ended first: it may or may not survive.
  bool lost = false;
};

/// A follower on its leader's side.
struct Subscriber {
  explicit Subscriber(const net::any_io_executor& executor) : wake(executor) {}
  NodeId node;
  Uuid instance;
  bool voter = true;
  EpochNumber term{-1};
  std::shared_ptr<http::FrameConnection> connection;
  /// Durable on its disk, and the same as ours.
  LogPosition acknowledged{0};
  bool accepted = false;
  bool closed = false;
  Monotonic last_heard{0};
  Monotonic last_sent{0};
  LogPosition told_commit{-1};
  bool told_in_quorum = false;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  Notifier wake;

  void close() {
    closed = true;
    connection->close();
    wake.notify();
  }
};

/// The link to the leader on its follower's side.
struct LeaderLink {
  LeaderInfo leader;
  std::shared_ptr<http::FrameConnection> connection;
  Monotonic last_heard{0};
  bool closed = false;

  void close() {
    closed = true;
    if (connection) {
      connection->close();
    }
  }
};

/// What all parts of a node share. It lives as long as one of its coroutines does; the node's
/// owner ends it with abandon(). Everything runs on one executor.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(NodeOptions node_options, NodeEnvironment environment,
       std::unique_ptr<streams::Database> db);
  ~Core();

  void start(NodeAddresses node_addresses);
  /// After it nothing of this node happens any more.
  void abandon();
  [[nodiscard]] bool serving() const { return started && !stopped && !failed; }
  /// The disk has failed: no more votes, acknowledgements or writes.
  void fail(const Error& error);

  // --- Elections (core_election.cpp) ---
  void apply(const Effects& effects);
  /// Answers meant for the sender go into `replies`; without it they are sent as messages.
  void receive(const ElectionMessage& message, std::vector<ElectionMessage>* replies);
  void refresh_log();
  void tick();
  [[nodiscard]] api::NodeState state() const;
  [[nodiscard]] std::optional<NodeId> leader_id() const;
  Member describe_self();

  // --- The leader's commit (core_commit.cpp) ---
  [[nodiscard]] bool accepts_writes() const;
  void prepare_to_lead(EpochNumber term);
  void stop_leading();
  /// Our log or an acknowledgement moved.
  void advance_commit();
  /// True when committed; false: unknown outcome (time, or leadership ran out).
  static net::awaitable<bool> wait_for_commit(std::shared_ptr<Core> core, LogPosition end);
  /// Follower: the leader's commit position.
  void commit_replicated(LogPosition leader_commit);

  Monotonic now() const { return env.clock.monotonic(); }
  streams::Database& db() { return *database; }
  log::TransactionLog& log() { return database->transaction_log(); }

  NodeOptions options;
  NodeEnvironment env;
  NodeAddresses addresses;
  NodeId self;
  Uuid instance;
  std::unique_ptr<streams::Database> database;
  std::unique_ptr<Election> election;
  MemberTable members;
  std::unique_ptr<http::TaskGroup> tasks;
  std::unique_ptr<Scavenger> scavenger;
  std::unique_ptr<Authenticator> authenticator;
  Ticks born{0};
  /// The commit position, the state, or a waiter changed.
  Notifier changed;
  bool started = false;
  bool stopping = false;  ///< refuses new work
  bool stopped = false;
  bool failed = false;
  int requests = 0;  ///< being answered
  /// Why gossip with a peer fails at present; each reason is logged once.
  std::map<NodeId, std::string> gossip_problems;
  /// What GET /gossip would have said, where it is to lag (NodeMisbehaviour).
  std::deque<std::pair<Monotonic, std::vector<Member>>> gossip_past;
  /// What it was before a resignation that this node is to win (NodeMisbehaviour).
  std::optional<std::int32_t> priority_after_election;

  // Leading.
  EpochNumber leading_term{-1};  ///< -1: not leading
  LogPosition epoch_end{0};      ///< end of the own epoch's records; only above it commits count
  bool draining = false;
  std::list<std::shared_ptr<CommitWaiter>> waiters;
  std::vector<std::shared_ptr<Subscriber>> subscribers;

  // Following.
  std::shared_ptr<LeaderLink> link;
  /// Whom this node followed, or itself: kept when there is no leader any more.
  std::optional<NodeId> last_leader;

 private:
  void send(ElectionMessage message);
  /// What NodeMisbehaviour does with an election that was won.
  void misbehave_as_leader();
  static net::awaitable<void> post(std::shared_ptr<Core> core, ElectionMessage message);
  static net::awaitable<void> tick_loop(std::shared_ptr<Core> core);

  std::vector<ElectionMessage>* replies_ = nullptr;
  NodeId replying_to_;
};

/// Asks and answers about members for ever (gossip_service.cpp).
net::awaitable<void> gossip_loop(std::shared_ptr<Core> core);
net::awaitable<void> gossip_with(std::shared_ptr<Core> core, http::Endpoint peer);
/// The answer to POST /verger/v1/gossip.
http::Response answer_gossip(Core& core, const std::string& body);
/// The answer to POST /verger/v1/election.
http::Response answer_election(Core& core, const std::string& body);

/// The leader's side of one replication connection, to its end (replication_leader.cpp).
net::awaitable<void> serve_follower(std::shared_ptr<Core> core,
                                    std::shared_ptr<http::FrameConnection> connection);
/// The follower's side, to its end (replication_follower.cpp).
net::awaitable<void> follow_leader(std::shared_ptr<Core> core, std::shared_ptr<LeaderLink> link);

}  // namespace verger::node
