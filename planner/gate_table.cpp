#include "planner/gate_table.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"

namespace verger::planner {
namespace {

using enum GateSeverity;
using enum GateUnit;

// One entry for each gate.
constexpr GateEntry kGates[] = {
    {.name = "cluster-identity",
     .former_name = "right-cluster",
     .closed_while = "a node, its database or a member differs from the registration",
     .measures = "nodes that are the registered ones",
     .limit = "all",
     .refuses_plans = true,
     .severity = kFault,
     .check = detail::cluster_identity},
    {.name = kAgentsAnswer,
     .former_name = "",
     .closed_while = "an agent does not answer, is too old, cannot read its node's files, may not "
                     "operate its node (wrong password, missing role), or reports another version "
                     "or instance than its node",
     .measures = "agents that answer, or what is wrong with one",
     .limit = "all, of version 0.1 or newer",
     .refuses_plans = true,
     .severity = kFault,
     .check = detail::agents_answer},
    {.name = "voters-alive",
     .former_name = "",
     .closed_while = "a voter does not answer, or is not a leader or follower",
     .measures = "voters that are up and settled",
     .limit = "all",
     .refuses_plans = true,
     .per_node = true,
     .by_agent = true,
     .severity = kFault,
     .check = detail::voters_alive},
    {.name = "replicas-alive",
     .former_name = "",
     .closed_while = "a read-only replica does not answer, or does not follow the leader",
     .measures = "replicas that are up and settled",
     .limit = "all",
     .refuses_plans = true,
     .severity = kFault,
     .check = detail::replicas_alive},
    {.name = "one-leader",
     .former_name = "",
     .closed_while = "there is no leader or more than one, or a voter disagrees about the leader",
     .measures = "leaders",
     .limit = "1",
     .refuses_plans = true,
     .by_agent = true,
     .severity = kFault,
     .check = detail::one_leader},
    {.name = "quorum-margin",
     .former_name = "",
     .closed_while = "without this node there would be no quorum; for `offline` also if there are "
                     "only one or two voters",
     .measures = "voters that are up and settled without this node",
     .limit = "the quorum",
     .refuses_plans = true,
     .per_node = true,
     .by_agent = true,
     .severity = kFault,
     .check = detail::quorum_margin},
    {.name = "lag-below",
     .former_name = "",
     .closed_while = "a node is behind the leader by more than the limit: not received, not "
                     "processed or not indexed",
     .measures = "the largest lag of a live node, in bytes",
     .unit = kBytes,
     .limit = "`gates.lag_limit`",
     .refuses_plans = true,
     .by_agent = true,
     .severity = kDelay,
     .check = detail::lag_below},
    {.name = "node-current",
     .former_name = "",
     .closed_while = "the node is down, does not follow the leader, is in another epoch, or is "
                     "behind it by more than the limit; or its own agent does not answer or cannot "
                     "read its files. Other nodes do not count",
     .measures = "the lag of the node, in bytes",
     .unit = kBytes,
     .limit = "`gates.lag_limit`",
     .refuses_plans = true,
     .per_node = true,
     .severity = kDelay,
     .check = detail::node_current},
    {.name = "lag-falling",
     .former_name = "",
     .closed_while = "a node is more than a megabyte behind, the lag has not decreased for some "
                     "seconds, and the node has not yet received what the leader had then",
     .measures = "the largest lag of a live node, in bytes",
     .limit = "1 MiB, or the lag some seconds ago",
     .refuses_plans = true,
     .severity = kDelay,
     .check = detail::lag_falling},
    {.name = "no-scavenge-running",
     .former_name = "nobody-scavenges",
     .closed_while = "a scavenge is running on any node, the server's own auto-scavenge included",
     .measures = "scavenges",
     .limit = "none",
     .refuses_plans = true,
     .by_agent = true,
     .severity = kBusy,
     .check = detail::no_scavenge_running},
    // Refuses no plan: what runs now is adopted at its turn.
    {.name = "no-scavenge-elsewhere",
     .former_name = "others-idle",
     .closed_while = "a scavenge is running on another node; one on this node is adopted "
                     "(`foreign_scavenge: adopt`)",
     .measures = "scavenges",
     .limit = "none",
     .severity = kBusy,
     .check = detail::no_scavenge_elsewhere},
    {.name = "no-scavenge-on-node",
     .former_name = "idle",
     .closed_while = "a scavenge is running on this node",
     .measures = "scavenges",
     .limit = "none",
     .by_agent = true,
     .severity = kBusy,
     .check = detail::no_scavenge_on_node},
    {.name = "auto-scavenge-off",
     .former_name = "",
     .closed_while = "the server's own auto-scavenge is scheduled and not paused",
     .measures = "its state",
     .limit = "off",
     .refuses_plans = true,
     .severity = kFault,
     .check = detail::auto_scavenge_off},
    {.name = kNoOtherWork,
     .former_name = "",
     .closed_while = "an agent is executing a backup, a restore or a redaction; or work may still "
                     "run on a skipped node",
     .measures = "the work",
     .limit = "none",
     .refuses_plans = true,
     .severity = kBusy,
     .check = detail::no_other_work},
    {.name = "index-idle",
     .former_name = "",
     .closed_while = "the node's index is being merged",
     .measures = "idle or merging",
     .limit = "idle",
     .refuses_plans = true,
     .per_node = true,
     .severity = kBusy,
     .check = detail::index_idle},
    {.name = "disk",
     .former_name = "",
     .closed_while = "free space is less than what a scavenge writes beside the existing files, "
                     "plus the reserve: on the database's disk threads × the largest chunk; on the "
                     "index's disk, which may be another, the largest table or the tables of the "
                     "next merge",
     .measures = "free space of the disk with the least to spare",
     .unit = kBytes,
     .limit = "what is written, plus `gates.disk_reserve`",
     .refuses_plans = true,
     .per_node = true,
     .by_agent = true,
     .severity = kFault,
     .check = detail::disk},
    {.name = "disk-reserve",
     .former_name = "",
     .closed_while = "the database's disk has less free space than the reserve; for steps that "
                     "only read, such as [digests](digests.md)",
     .measures = "free space",
     .unit = kBytes,
     .limit = "`gates.disk_reserve`",
     .per_node = true,
     .severity = kFault,
     .check = detail::disk_reserve},
    {.name = "clocks",
     .former_name = "",
     .closed_while = "a node's clock differs from the controller's by more than the limit; the "
                     "request's round-trip time is allowed for",
     .measures = "the largest difference",
     .unit = kMilliseconds,
     .limit = "`gates.clock_skew`",
     .refuses_plans = true,
     .severity = kFault,
     .check = detail::clocks},
    {.name = "certificates",
     .former_name = "",
     .closed_while =
         "a certificate that a node or agent serves, an intermediate served with it, or "
         "the trusted root of both expires before the expected end of the step plus a "
         "margin",
     .measures = "the earliest expiry",
     .unit = kMilliseconds,
     .limit = "`gates.certificate_margin`",
     .refuses_plans = true,
     .severity = kFault,
     .check = detail::certificates},
    {.name = "queries",
     .former_name = "",
     .closed_while =
         "the result of a Prometheus query is outside its bounds, empty, or not available",
     .measures = "the result; each query is a gate `queries:NAME`",
     .limit = "`gates.queries`",
     .refuses_plans = true,
     .severity = kDelay,
     .check = detail::queries},
    // Refuses no plan: the leader may not have been watched that long.
    {.name = kLeaderSettled,
     .former_name = "",
     .closed_while = "an election was too recent",
     .measures = "the time since it",
     .unit = kMilliseconds,
     .limit =
         "`gates.election_settle`; after the run's own move of the leader `gates.move_settle`, "
         "where that is less",
     .severity = kUnsettled,
     .check = detail::leader_settled},
    // Refuses no plan: a plan may be made at any time.
    {.name = kMaintenanceWindow,
     .former_name = "hours",
     .closed_while = "the maintenance windows are closed, or the step does not fit into them",
     .measures = "open or closed, and since when",
     .limit = "`windows`",
     .severity = kSchedule,
     .check = detail::maintenance_window},
    // Refuses no plan: the order of the stages sees to it.
    {.name = "not-leader",
     .former_name = "",
     .closed_while = "the node leads: its turn comes later",
     .measures = "its role",
     .limit = "not the leader",
     .per_node = true,
     .by_agent = true,
     .severity = kUnsettled,
     .check = detail::not_leader},
};

constexpr bool is_complete() {
  return std::ranges::all_of(kGates, [](const GateEntry& each) {
    return each.check != nullptr && !each.name.empty() && !each.closed_while.empty() &&
           !each.measures.empty() && !each.limit.empty();
  });
}
static_assert(is_complete(), "a gate has a name, a check, and texts of what it measures and when");

std::string length_text(std::int64_t milliseconds) {
  return milliseconds % 3'600'000 == 0 ? fmt::format("{} h", milliseconds / 3'600'000)
         : milliseconds % 1'000 == 0   ? fmt::format("{} s", milliseconds / 1'000)
                                       : fmt::format("{} ms", milliseconds);
}

}  // namespace

std::string_view to_string(GateSeverity severity) {
  switch (severity) {
    case kFault:
      return "fault";
    case kUnsettled:
      return "unsettled";
    case kDelay:
      return "delay";
    case kBusy:
      return "busy";
    case kSchedule:
      return "schedule";
  }
  return "";
}

std::int64_t alert_after_ms(GateSeverity severity) {
  constexpr std::int64_t kMinute = 60'000;
  switch (severity) {
    case kFault:
      return 5 * kMinute;
    case kUnsettled:
      return 15 * kMinute;
    case kDelay:
      return 30 * kMinute;
    case kBusy:
      return 60 * kMinute;
    case kSchedule:
      break;
  }
  return 0;
}

std::span<const GateEntry> gate_table() { return kGates; }

const GateEntry* find_gate(std::string_view name) {
  const auto own = name.substr(0, name.find(':'));  // "queries:write-latency"
  const auto* found = std::ranges::find_if(kGates, [own](const GateEntry& each) {
    return each.name == own || (!own.empty() && each.former_name == own);
  });
  return found == std::end(kGates) ? nullptr : found;
}

std::string current_gate_name(std::string_view name) {
  const auto* found = find_gate(name);
  return std::string(found != nullptr && found->former_name == name ? found->name : name);
}

std::string limit_text(const Gate& gate) {
  if (gate.limit == 0) {
    return "";
  }
  const auto* found = find_gate(gate.name);
  switch (found == nullptr ? kNone : found->unit) {
    case kBytes:
      return human_bytes(gate.limit);
    case kMilliseconds:
      return length_text(gate.limit);
    case kNone:
      break;
  }
  return std::to_string(gate.limit);
}

std::string gate_text(const Gate& gate) {
  const auto limit = limit_text(gate);
  return limit.empty() ? gate.name : fmt::format("{} {}", gate.name, limit);
}

}  // namespace verger::planner
