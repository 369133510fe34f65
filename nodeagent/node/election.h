#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/base/types.h"
#include "engine/base/uuid.h"
#include "nodeagent/api/node.h"

/// Who leads: a pure state machine. Time, messages and the log's state come in; messages and
/// effects go out. It never looks at a clock, disk or network, and the same inputs give the same
/// outputs.
///
/// A term is an epoch number. Safety rests on votes alone, as in Raft: a voter votes once per term,
/// durably (proposal.chk) before it answers, only for a candidate whose (last epoch number, writer
/// position) is not behind its own, and a candidate needs a majority of the cluster size. Which
/// node becomes candidate is only a matter of taste: a node without a leader calls all, waits for a
/// majority (and shortly for the rest), keeps the alive leader of the newest epoch, or nominates
/// the best by epoch number, writer, chaser, priority, instance id (node-interface.md §3.2).
///
///   Initializing -> DiscoverLeader -> Unknown -> PreLeader -> Leader -> ResigningLeader -> Unknown
///                          |             ^  \                   |               |
///                          v             |   v                  +-> Unknown     +-> PreReplica
///                       PreReplica -> CatchingUp -> Clone -> Follower (link lost -> Unknown)
///   ReadOnlyLeaderless -> PreReadOnlyReplica -> ReadOnlyReplica (link lost -> ReadOnlyLeaderless)
namespace verger::node {

/// A node's name among the members: "host:port" of its advertised HTTP endpoint.
using NodeId = std::string;

/// What a node's log holds; compared to choose and to grant.
struct LogState {
  EpochNumber last_epoch{-1};
  LogPosition epoch_position{-1};
  Uuid epoch_id;
  LogPosition writer{0};
  LogPosition chaser{0};
  friend bool operator==(const LogState&, const LogState&) = default;
};

/// Who leads a term.
struct LeaderInfo {
  NodeId node;
  Uuid instance;
  EpochNumber term{-1};
  friend bool operator==(const LeaderInfo&, const LeaderInfo&) = default;
};

namespace message {
/// "Who are you, whom do you follow?" of a node that has no leader.
struct Probe {
  std::uint64_t round = 0;
};
struct ProbeReply {
  std::uint64_t round = 0;
  Uuid instance;
  LogState log;
  EpochNumber term{-1};
  std::int32_t priority = 0;
  bool read_only = false;
  bool resigning = false;
  /// Itself, or the leader it has a living link to.
  std::optional<LeaderInfo> leader;
  /// Whose epoch the newest one in its log is.
  Uuid last_epoch_leader;
};
/// "You are the best: be a candidate."
struct Nominate {
  EpochNumber seen_term{-1};
};
struct RequestVote {
  EpochNumber term{-1};
  Uuid instance;
  LogState log;
};
struct Vote {
  EpochNumber term{-1};  ///< of the request
  bool granted = false;
  EpochNumber highest_term{-1};  ///< the voter's
};
/// From the new leader, and as an answer to probes of the uninformed.
struct LeaderElected {
  LeaderInfo leader;
};
/// A leader requests its peers' consent to resign.
struct Resign {
  EpochNumber term{-1};
  Uuid instance;
};
struct ResignAgreed {
  EpochNumber term{-1};
};
}  // namespace message

using ElectionPayload =
    std::variant<message::Probe, message::ProbeReply, message::Nominate, message::RequestVote,
                 message::Vote, message::LeaderElected, message::Resign, message::ResignAgreed>;
struct ElectionMessage {
  NodeId from;
  NodeId to;
  ElectionPayload payload;
};

namespace effect {
/// Write proposal.chk durably. What follows in the list must not happen before it is done; if
/// it fails, nothing of it may happen at all.
struct PersistTerm {
  EpochNumber term;
};
struct Send {
  ElectionMessage message;
};
/// Break the link to the leader, if any, and acknowledge nothing more to it.
struct StopFollowing {};
/// Connect to this leader and subscribe.
struct Follow {
  LeaderInfo leader;
};
/// Write an epoch record with this number, get it committed, then call lead().
struct PrepareToLead {
  EpochNumber term;
};
/// No longer leader: fail what waits for a commit, drop subscribers.
struct StopLeading {};
/// New writes are refused from here on; call drained() when none is in flight.
struct Drain {};
/// The state shown to others changed.
struct StateChanged {
  api::NodeState state;
};
}  // namespace effect
using ElectionEffect =
    std::variant<effect::PersistTerm, effect::Send, effect::StopFollowing, effect::Follow,
                 effect::PrepareToLead, effect::StopLeading, effect::Drain, effect::StateChanged>;
using Effects = std::vector<ElectionEffect>;

/// Of one node. Times are durations of the driver's monotonic clock.
struct ElectionConfig {
  NodeId self;
  Uuid instance;
  int cluster_size = 1;
  bool read_only = false;
  std::int32_t priority = 0;
  std::chrono::milliseconds discover_leader{3000};
  std::chrono::milliseconds election_timeout{1000};
  std::chrono::milliseconds quorum_loss_wait{3000};
  std::chrono::milliseconds drain_timeout{4000};
  std::uint64_t seed = 0;  ///< for the jitter of rounds
};

/// How a link to the leader stands.
enum class LinkState : std::uint8_t { kSubscribed, kCaughtUp, kInQuorum, kLost };

/// Not for several threads. The caller carries out the effects in their order and reports
/// back what came of them.
class Election {
 public:
  /// `durable_term`: the larger of proposal.chk and the log's last epoch number.
  Election(ElectionConfig config, EpochNumber durable_term, LogState log, Uuid last_epoch_leader);

  Effects start(Monotonic now);
  /// Call it at least each few milliseconds.
  Effects tick(Monotonic now);
  Effects receive(Monotonic now, const ElectionMessage& message);
  /// Voters known and thought alive (others than this node), by gossip.
  void set_peers(std::set<NodeId> alive, std::set<NodeId> all);
  void set_log(LogState log, Uuid last_epoch_leader);
  void set_priority(std::int32_t priority) { priority_ = priority; }

  // --- Reports of the driver ---
  /// The epoch of `term` is committed.
  Effects lead(Monotonic now, EpochNumber term);
  /// The link to the leader of `term` changed.
  Effects link(Monotonic now, EpochNumber term, LinkState state);
  /// Voters with a living subscription, without this node (leader only).
  Effects subscribers(Monotonic now, int count);
  /// No write is in flight any longer (after effect::Drain).
  Effects drained(Monotonic now);
  /// An operator orders this node to resign. Nothing happens unless it leads.
  Effects resign(Monotonic now);
  Effects shut_down(Monotonic now);

  [[nodiscard]] api::NodeState state() const { return state_; }
  [[nodiscard]] EpochNumber term() const { return term_; }
  /// The leader this node is, or has a living link to or is connecting to.
  [[nodiscard]] const std::optional<LeaderInfo>& leader() const { return leader_; }
  [[nodiscard]] bool leads(EpochNumber term) const;
  [[nodiscard]] std::int32_t priority() const { return priority_; }

 private:
  struct Round {
    std::uint64_t id = 0;
    Monotonic started{};
    std::map<NodeId, message::ProbeReply> replies;
    bool decided = false;
  };

  [[nodiscard]] int majority() const { return config_.cluster_size / 2 + 1; }
  [[nodiscard]] LeaderInfo myself() const;
  [[nodiscard]] message::ProbeReply describe(std::uint64_t round) const;
  void set_state(Effects& out, api::NodeState state);
  void send(Effects& out, const NodeId& to, ElectionPayload payload);
  void broadcast(Effects& out, const ElectionPayload& payload);
  void begin_round(Effects& out, Monotonic now);
  void count_votes(Effects& out, Monotonic now);
  void judge_round(Effects& out, Monotonic now);
  void nominate(Effects& out, Monotonic now);
  [[nodiscard]] bool leaderless() const;
  [[nodiscard]] bool leading() const;
  [[nodiscard]] NodeId choose() const;
  [[nodiscard]] std::chrono::nanoseconds jitter(std::chrono::nanoseconds below);
  void step_down(Effects& out, Monotonic now);
  void note_elected(const LeaderInfo& leader);
  void campaign(Effects& out, Monotonic now);
  void win(Effects& out, Monotonic now);
  void follow(Effects& out, Monotonic now, const LeaderInfo& leader);
  void lose_leader(Effects& out, Monotonic now);
  void schedule_round(Monotonic now);
  void begin_drain(Effects& out, Monotonic now);

  // election_messages.cpp
  void on(Effects& out, Monotonic now, const NodeId& from, const message::Probe& probe);
  void on(Effects& out, Monotonic now, const NodeId& from, const message::ProbeReply& reply);
  void on(Effects& out, Monotonic now, const NodeId& from, const message::Nominate& nominate);
  void on(Effects& out, Monotonic now, const NodeId& from, const message::RequestVote& request);
  void on(Effects& out, Monotonic now, const NodeId& from, const message::Vote& vote);
  void on(Effects& out, Monotonic now, const NodeId& from, const message::LeaderElected& elected);
  void on(Effects& out, Monotonic now, const NodeId& from, const message::Resign& resign);
  void on(Effects& out, Monotonic now, const NodeId& from, const message::ResignAgreed& agreed);

  ElectionConfig config_;
  SeededRandom random_;
  api::NodeState state_ = api::NodeState::kInitializing;
  EpochNumber term_;  ///< highest term voted in, led, or followed
  /// Whom this process voted for in term_; empty after a restart: then no node gets a vote in it.
  NodeId voted_for_;
  LogState log_;
  Uuid last_epoch_leader_;
  std::int32_t priority_ = 0;
  std::set<NodeId> alive_peers_;
  std::set<NodeId> peers_;

  std::optional<LeaderInfo> leader_;
  bool link_alive_ = false;
  Monotonic discover_until_{};
  Monotonic next_round_{};
  Round round_;
  std::set<NodeId> failed_candidates_;
  NodeId last_nominee_;
  bool campaigning_ = false;
  Monotonic campaign_until_{};
  std::set<NodeId> votes_;
  /// A leader that said it resigns, until the next one is elected.
  Uuid resigning_instance_;
  EpochNumber resigning_term_{-1};
  /// Highest term heard of; a candidate goes above it.
  EpochNumber seen_term_{-1};
  bool resign_requested_ = false;
  Monotonic resign_until_{};
  std::set<NodeId> resign_agreed_;
  Monotonic drain_until_{};
  int subscribers_ = 0;
  Monotonic quorum_seen_{};
  Monotonic follow_until_{};
};

}  // namespace verger::node
