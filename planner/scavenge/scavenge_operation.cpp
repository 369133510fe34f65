#include <algorithm>

#include "planner/detail/make_field.h"
#include "planner/operation.h"
#include "planner/scavenge/plan_scavenge.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> scavenge_fields() {
  static const std::vector<Field> kFields{
      field<&ScavengePolicy::threads>("threads", "parameters.threads",
                                      "Threads on each node, 1 to 4")
          .between(1, 4)
          .accepted(),
      field<&ScavengePolicy::threshold>(
          "threshold", "parameters.threshold",
          "Chunks of more weight than this are rewritten (about 2 for each record that goes); -1 "
          "rewrites all")
          .between(-1, 1'000'000'000)
          .accepted(),
      field<&ScavengePolicy::throttle_percent>("throttlePercent", "parameters.throttle_percent",
                                               "Share of the time spent working; needs --threads 1")
          .between(1, 100)
          .accepted(),
      field<&ScavengePolicy::leader_threads>("leaderThreads", "parameters.leader.threads",
                                             "Threads on the leader")
          .between(1, 4)
          .shown()
          .later(),
      field<&ScavengePolicy::leader_throttle_percent>(
          "leaderThrottlePercent", "parameters.leader.throttle_percent", "Share on the leader")
          .between(1, 100)
          .shown()
          .later(),
      field<&ScavengePolicy::replica_threads>("replicaThreads", "parameters.replica.threads",
                                              "Threads on read-only replicas")
          .between(1, 4)
          .shown()
          .later(),
      field<&ScavengePolicy::replica_throttle_percent>("replicaThrottlePercent",
                                                       "parameters.replica.throttle_percent",
                                                       "Share on read-only replicas")
          .between(1, 100)
          .shown()
          .later(),
      field<&ScavengePolicy::strategy>("strategy", "strategy",
                                       "In which order the nodes are scavenged, and by whom")
          .accepted(),
      field<&ScavengePolicy::read_only_replicas>("readOnlyReplicas", "read_only_replicas",
                                                 "Whether read-only replicas are scavenged"),
      field<&ScavengePolicy::leader>("leader", "leader", "How the leader is scavenged"),
      field<&ScavengePolicy::foreign>("foreign", "foreign_scavenge",
                                      "What is done about a scavenge that is not the run's own")
          .later(),
      field<&ScavengePolicy::auto_scavenge>("autoScavenge", "auto_scavenge",
                                            "Whether the servers' own auto-scavenge is paused")
          .later(),
      field<&ScavengePolicy::redaction_interface_licensed>(
          "redactionInterfaceLicensed", "redaction_interface_licensed",
          "Whether the servers' licence covers the interface that switches chunks (24.10 and "
          "later)")
          .shown()
          .later(),
      field<&ScavengePolicy::server_below_bytes>(
          "serverBelowBytes", "auto.server_below",
          "Strategy auto: where less than this would go, a node's server does it")
          .size()
          .shown()
          .later(),
      field<&ScavengePolicy::heal_existence_filter>(
          "healExistenceFilter", "heal_existence_filter",
          "Whether nodes that are stopped for it make their existence filter anew")
          .shown()
          .later(),
      field<&ScavengePolicy::compare_digests>("compareDigests", "compare_digests",
                                              "Whether the nodes are compared at the end"),
      field<&ScavengePolicy::scavenge_attempts>("scavengeAttempts", "retries.scavenge",
                                                "Starts of a node's scavenge")
          .between(1, 100),
      field<&ScavengePolicy::scavenge_deadline_ms>("scavengeDeadlineMs", "deadlines.scavenge",
                                                   "For the scavenge of one node")
          .length(),
      field<&ScavengePolicy::digest_deadline_ms>("digestDeadlineMs", "deadlines.digest",
                                                 "For digests")
          .length(),
  };
  return kFields;
}

std::vector<FieldProblem> check_scavenge(const Policy& policy) {
  const auto& own = scavenge_of(policy);
  if (own.threads > 1 && own.throttle_percent != 100) {
    return {{.place = "parameters",
             .message = "a scavenge with several threads cannot be throttled",
             .hint = "use one thread, or 100 percent"}};
  }
  return {};
}

constexpr std::string_view kWorkSteps[] = {"scavenge", "offline_scavenge", "online_scavenge"};
constexpr AgentKind kAgentKinds[] = {{.name = "scavenge", .needs_server = true},
                                     {.name = "scavenge_point", .needs_server = true},
                                     {.name = "offline_scavenge"},
                                     {.name = "online_scavenge"}};

/// One node after the other, or all but two side by side.
std::int64_t time_at_work_ms(const Policy& policy, std::span<const PastDuration> durations) {
  const auto strategy = scavenge_of(policy).strategy;
  std::int64_t all_ms = 0;
  std::int64_t one_ms = 0;
  for (const auto& past : durations) {
    if (std::ranges::find(kWorkSteps, past.kind) != std::end(kWorkSteps)) {
      all_ms += past.duration_ms;
      one_ms = std::max(one_ms, past.duration_ms);
    }
  }
  // The first, the others at once, and the leader.
  return strategy == Strategy::kConcurrent ? std::min(all_ms, 3 * one_ms) : all_ms;
}

}  // namespace

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::kRolling:
      return "rolling";
    case Strategy::kFollowersOnly:
      return "followers-only";
    case Strategy::kConcurrent:
      return "concurrent";
    case Strategy::kOffline:
      return "offline";
    case Strategy::kOnline:
      return "online";
    case Strategy::kAuto:
      return "auto";
  }
  return "rolling";
}
std::string_view to_string(ReplicaRule rule) {
  return rule == ReplicaRule::kInclude ? "include" : "skip";
}
std::string_view to_string(LeaderRule rule) {
  return rule == LeaderRule::kResign ? "resign" : "in-place";
}
std::string_view to_string(ForeignRule rule) {
  return rule == ForeignRule::kWait ? "wait" : "adopt";
}
std::string_view to_string(AutoScavengeRule rule) {
  return rule == AutoScavengeRule::kRefuse ? "refuse" : "pause";
}

ScavengePolicy& scavenge_of(Policy& policy) { return std::get<ScavengePolicy>(policy.operation); }
const ScavengePolicy& scavenge_of(const Policy& policy) {
  return std::get<ScavengePolicy>(policy.operation);
}

const Operation& ScavengePolicy::operation() {
  static const Operation kScavenge{
      .name = "scavenge",
      .summary = "Plan a scavenge of a whole cluster",
      .example = "--threads 2",
      .fields = scavenge_fields,
      .defaults = [] { return OperationPolicy(ScavengePolicy()); },
      .plan = detail::plan_scavenge,
      .check = check_scavenge,
      .moves_leader =
          [](const Policy& policy) { return scavenge_of(policy).leader == LeaderRule::kResign; },
      .time_at_work_ms = time_at_work_ms,
      .work_steps = kWorkSteps,
      .agent_kinds = kAgentKinds};
  return kScavenge;
}

}  // namespace verger::planner
