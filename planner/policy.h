#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verger::planner {

/// In which order the nodes are scavenged, and by whom.
enum class Strategy : std::uint8_t {
  kRolling,        ///< followers, read-only replicas, the leader after it resigned
  kFollowersOnly,  ///< the leader is left out
  kConcurrent,     ///< one follower makes the point, then all others at once, then the leader
  /// One node at a time is stopped, its agent scavenges the files, and it starts again; the leader
  /// last, after it resigned. Much faster, and each node is away meanwhile.
  kOffline,
};
std::string_view to_string(Strategy strategy);

/// Whether read-only replicas are scavenged.
enum class ReplicaRule : std::uint8_t { kInclude, kSkip };
std::string_view to_string(ReplicaRule rule);

/// What a pause does to a scavenge that runs.
enum class PauseRule : std::uint8_t { kStop, kLeave };
std::string_view to_string(PauseRule rule);

/// How the leader is scavenged.
enum class LeaderRule : std::uint8_t {
  kResign,   ///< moved away first, scavenged as a follower
  kInPlace,  ///< scavenged while it leads; always so in a cluster of one
};
std::string_view to_string(LeaderRule rule);

/// A scavenge that another party started on a node.
enum class ForeignRule : std::uint8_t {
  kWait,   ///< for its end
  kAdopt,  ///< it is taken for the step's own, and recorded as adopted
};
std::string_view to_string(ForeignRule rule);

/// Where the server's own auto-scavenge (24.10 and later) is scheduled.
enum class AutoScavengeRule : std::uint8_t {
  kRefuse,  ///< there is no plan until an operator pauses it
  kPause,   ///< it is paused for the run, and resumed however the run ends
};
std::string_view to_string(AutoScavengeRule rule);

/// An instant query of a Prometheus server that holds work back. Bounds are decimal numbers as they
/// were written ("0.5"), an empty one is none; every value of the answer must keep to both.
struct QueryBlocker {
  std::string name;   ///< "write-latency"
  std::string url;    ///< "https://prometheus.example.com:9090"
  std::string query;  ///< PromQL
  std::string at_least;
  std::string at_most;
  friend bool operator==(const QueryBlocker&, const QueryBlocker&) = default;
};

/// What a person wants of a rolling scavenge. Times are milliseconds. All of it is part of the
/// plan's hash.
struct ScavengePolicy {
  Strategy strategy = Strategy::kRolling;
  std::int32_t threads = 1;  ///< 1 to 4; more make a server fail
  std::int32_t threshold = 0;
  std::int32_t throttle_percent = 100;  ///< must be 100 with several threads
  ReplicaRule read_only_replicas = ReplicaRule::kInclude;
  LeaderRule leader = LeaderRule::kResign;
  PauseRule on_pause = PauseRule::kStop;
  /// The same at the start of a deny window, or at the end of an allow window.
  PauseRule on_close = PauseRule::kStop;
  ForeignRule foreign = ForeignRule::kWait;
  AutoScavengeRule auto_scavenge = AutoScavengeRule::kRefuse;
  /// 0: as the others. The threshold belongs to the point, so all nodes share it.
  std::int32_t leader_threads = 0;
  std::int32_t leader_throttle_percent = 0;
  std::int32_t replica_threads = 0;
  std::int32_t replica_throttle_percent = 0;
  bool compare_digests = true;  ///< where each node has an agent
  /// After a planned move of the leader, projections and persistent subscriptions that ran before
  /// it are looked for; this long they may take to come back, ...
  bool check_server_work = true;
  std::int64_t server_work_back_ms = 120'000;
  /// ... this long the run waits for those that have not, ...
  std::int64_t server_work_wait_ms = 3'600'000;
  /// ... and they are started again, once.
  bool restart_server_work = false;

  std::int64_t lag_limit_bytes = std::int64_t{16} << 20U;
  /// Disk that must stay free beyond the largest rewrite.
  std::int64_t disk_reserve_bytes = std::int64_t{256} << 20U;
  std::int64_t clock_skew_limit_ms = 60'000;  ///< between a node's clock and the controller's
  /// A certificate must be valid for so long after the expected end of the step. No longer than an
  /// hour by itself: certificates that are renewed by a machine may live for a day only.
  std::int64_t certificate_margin_ms = 3'600'000;
  std::vector<QueryBlocker> queries;

  /// Neither a scavenge nor a resignation begins sooner after an election that the run did not
  /// make: what caused it may do so again.
  std::int64_t election_settle_ms = 180'000;
  /// The same after the run's own move of the leader, where that is less.
  std::int64_t move_settle_ms = 10'000;
  std::int64_t leader_hold_ms = 5'000;  ///< a move counts once it held this long
  std::int32_t resign_attempts = 3;
  std::int32_t scavenge_attempts = 5;  ///< starts per step, after errors and interruptions
  std::int64_t scavenge_deadline_ms = std::int64_t{14} * 24 * 3'600'000;
  std::int64_t move_deadline_ms = 600'000;
  std::int64_t digest_deadline_ms = std::int64_t{6} * 3'600'000;
  std::int64_t undo_deadline_ms = 300'000;
  /// Offline: for the server's stop, and again until it answers after its start.
  std::int64_t service_deadline_ms = 3'600'000;
  /// A gate closed for longer raises an alert; 0: each gate has its own time (planner/gates.h).
  std::int64_t gate_deadline_ms = 0;

  [[nodiscard]] std::int64_t own_move_settle_ms() const {
    return move_settle_ms < election_settle_ms ? move_settle_ms : election_settle_ms;
  }
};

/// What is wanted of a cluster. `operation` chooses the planning function.
struct Policy {
  std::string name = "ad-hoc";
  std::string operation = "scavenge";
  ScavengePolicy scavenge;
};

}  // namespace verger::planner
