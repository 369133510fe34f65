#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace verger::planner {

struct Operation;
struct Policy;

/// In which order the nodes are scavenged, and by whom.
enum class Strategy : std::uint8_t {
  kRolling,        ///< followers, read-only replicas, the leader after it resigned
  kFollowersOnly,  ///< the leader is left out
  kConcurrent,     ///< one follower makes the point, then all others at once, then the leader
  /// One node at a time is stopped, its agent scavenges the files, and it starts again; the leader
  /// last, after it resigned. Much faster, and each node is away meanwhile.
  kOffline,
  /// As rolling, but each node's agent does the work beside its running server, and switches the
  /// new chunks into it through the server's own call.
  kOnline,
  kAuto,  ///< online, offline or by the server itself: chosen for each node (scavenge_way.h)
};
std::string_view to_string(Strategy strategy);
constexpr auto choices_of(Strategy) {
  return std::array{Strategy::kRolling, Strategy::kFollowersOnly, Strategy::kConcurrent,
                    Strategy::kOffline, Strategy::kOnline,        Strategy::kAuto};
}

/// Whether read-only replicas are scavenged.
enum class ReplicaRule : std::uint8_t { kInclude, kSkip };
std::string_view to_string(ReplicaRule rule);
constexpr auto choices_of(ReplicaRule) {
  return std::array{ReplicaRule::kInclude, ReplicaRule::kSkip};
}

/// How the leader is scavenged.
enum class LeaderRule : std::uint8_t {
  kResign,   ///< moved away first, scavenged as a follower
  kInPlace,  ///< scavenged while it leads; always so in a cluster of one
};
std::string_view to_string(LeaderRule rule);
constexpr auto choices_of(LeaderRule) {
  return std::array{LeaderRule::kResign, LeaderRule::kInPlace};
}

/// A scavenge on a node that is not the run's own.
enum class ForeignRule : std::uint8_t {
  kWait,   ///< for its end
  kAdopt,  ///< it is taken for the step's own, and recorded as adopted
};
std::string_view to_string(ForeignRule rule);
constexpr auto choices_of(ForeignRule) {
  return std::array{ForeignRule::kWait, ForeignRule::kAdopt};
}

/// Where the server's own auto-scavenge (24.10 and later) is scheduled.
enum class AutoScavengeRule : std::uint8_t {
  kRefuse,  ///< there is no plan until it is paused
  kPause,   ///< it is paused for the run, and resumed however the run ends
};
std::string_view to_string(AutoScavengeRule rule);
constexpr auto choices_of(AutoScavengeRule) {
  return std::array{AutoScavengeRule::kRefuse, AutoScavengeRule::kPause};
}

/// What a person wants of a scavenge of a cluster, besides what every run has. Its fields are in
/// scavenge_operation.cpp. Times are milliseconds.
struct ScavengePolicy {
  /// The scavenge of a whole cluster to one point; the strategies are in plan_scavenge.cpp.
  static const Operation& operation();

  Strategy strategy = Strategy::kRolling;
  std::int32_t threads = 1;  ///< 1 to 4; more make a server fail
  std::int32_t threshold = 0;
  std::int32_t throttle_percent = 100;  ///< must be 100 with several threads
  ReplicaRule read_only_replicas = ReplicaRule::kInclude;
  LeaderRule leader = LeaderRule::kResign;
  ForeignRule foreign = ForeignRule::kWait;
  AutoScavengeRule auto_scavenge = AutoScavengeRule::kRefuse;
  /// 0: as the others. The threshold belongs to the point, so all nodes share it.
  std::int32_t leader_threads = 0;
  std::int32_t leader_throttle_percent = 0;
  std::int32_t replica_threads = 0;
  std::int32_t replica_throttle_percent = 0;
  bool compare_digests = true;         ///< where each node has an agent
  std::int32_t scavenge_attempts = 5;  ///< starts per step, after errors and interruptions
  /// The operator says that the licence of the servers (from 24.10 on) covers the interface by
  /// which chunks are switched. Verger goes round no check of the server.
  bool redaction_interface_licensed = false;
  /// Strategy auto: where a scavenge would remove less than this, a node's server does it; without
  /// an estimate, where less log was written since its last scavenge.
  std::int64_t server_below_bytes = std::int64_t{8} << 30U;
  /// A node that is stopped for it (strategies offline and auto) makes its existence filter anew.
  bool heal_existence_filter = false;
  std::int64_t scavenge_deadline_ms = std::int64_t{14} * 24 * 3'600'000;
  std::int64_t digest_deadline_ms = std::int64_t{6} * 3'600'000;
};

/// Of a policy for a scavenge.
ScavengePolicy& scavenge_of(Policy& policy);
const ScavengePolicy& scavenge_of(const Policy& policy);

}  // namespace verger::planner
