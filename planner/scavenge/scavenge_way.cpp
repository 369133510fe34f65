#include "planner/scavenge/scavenge_way.h"

#include <fmt/format.h>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"

namespace verger::planner::detail {
namespace {

/// The first release whose servers have the call that switches chunks.
constexpr int kFirstWithSwitching = 2306;
/// From here on the vendor asks for a licence of the interface that the call is part of.
constexpr int kFirstWithLicence = 2410;

/// Bytes of the log behind the point to which the node was scavenged last; -1: not known.
std::int64_t written_since_scavenge(const NodeSnapshot& node) {
  if (!node.agent || node.agent->writer_checkpoint < 0) {
    return -1;
  }
  const auto& facts = *node.agent;
  const auto from = facts.last_finished ? facts.last_finished->position : 0;
  return from < 0 || from > facts.writer_checkpoint ? -1 : facts.writer_checkpoint - from;
}

std::string written_text(const NodeSnapshot& node) {
  const auto written = written_since_scavenge(node);
  if (written < 0) {
    return "how much was written since its last scavenge is not known";
  }
  return node.agent->last_finished
             ? fmt::format("{} of log since its last scavenge", human_bytes(written))
             : fmt::format("{} of log, never scavenged", human_bytes(written));
}

/// What is decided by, with its figure.
std::string measure_of(const NodeSnapshot& node, const NodeEstimate* estimate) {
  if (estimate == nullptr) {
    return written_text(node);
  }
  if (estimate->removed_bytes < 0) {
    return fmt::format("{}; no estimate: {}", written_text(node), estimate->problem);
  }
  return fmt::format("estimate: {}{} would go; {}", estimate->at_least ? "at least " : "",
                     human_bytes(estimate->removed_bytes), written_text(node));
}

/// Why there is too little to do for another way than the server's own; empty: there is not.
std::string little_to_do(const NodeSnapshot& node, const ScavengePolicy& wanted,
                         const NodeEstimate* estimate) {
  const auto limit = human_bytes(wanted.server_below_bytes);
  if (estimate != nullptr && estimate->removed_bytes >= 0) {
    return estimate->removed_bytes < wanted.server_below_bytes
               ? fmt::format("less than {} would go by its agent's estimate", limit)
               : std::string();
  }
  const auto written = written_since_scavenge(node);
  return written >= 0 && written < wanted.server_below_bytes
             ? fmt::format("less than {} of log was written since its last scavenge", limit)
             : std::string();
}

ChosenWay choose_by_itself(const NodeSnapshot& node, const ScavengePolicy& wanted, bool may_stop,
                           const NodeEstimate* estimate) {
  ChosenWay out{.measure = measure_of(node, estimate)};
  out.reason = little_to_do(node, wanted, estimate);
  if (!out.reason.empty()) {
    return out;
  }
  const auto against_online = online_obstacles(node, wanted);
  if (against_online.empty()) {
    out.way = ScavengeWay::kOnline;
    out.reason = "there is much to do, and its agent can switch chunks into the running server";
    return out;
  }
  const auto& not_online = against_online.front().message;
  const auto against_offline = offline_obstacles(node);
  if (against_offline.empty() && may_stop) {
    out.way = ScavengeWay::kOffline;
    out.reason = fmt::format("there is much to do; not online: {}", not_online);
    return out;
  }
  out.reason = fmt::format("not online: {}; not offline: {}", not_online,
                           against_offline.empty()
                               ? std::string("the cluster cannot do without it, or it leads")
                               : against_offline.front().message);
  return out;
}

}  // namespace

std::string_view to_string(ScavengeWay way) {
  switch (way) {
    case ScavengeWay::kServer:
      return "server";
    case ScavengeWay::kOnline:
      return "online";
    case ScavengeWay::kOffline:
      return "offline";
  }
  return "server";
}

std::vector<Obstacle> online_obstacles(const NodeSnapshot& node, const ScavengePolicy& wanted) {
  std::vector<Obstacle> out;
  if (!node.has_agent()) {
    out.push_back({.code = "online-needs-agent",
                   .message = "it has no agent that could switch chunks",
                   .hint = "install verger-agent on that machine, or use the strategy rolling"});
    return out;
  }
  if (node.agent && !node.agent->online_problem.empty()) {
    out.push_back({.code = "online-not-possible",
                   .message = node.agent->online_problem,
                   .hint = "use the strategy offline or rolling, or see what the strategy online "
                           "needs"});
  }
  const auto version = version_number(node.version);
  if (!version) {
    return out;  // version-unknown, or voters-alive, says so
  }
  if (*version < kFirstWithSwitching) {
    out.push_back(
        {.code = "online-version-too-old",
         .message = fmt::format("version {} has no call that switches chunks", node.version),
         .hint = "23.6 or newer is needed; use the strategy offline or rolling"});
  } else if (*version >= kFirstWithLicence && !wanted.redaction_interface_licensed) {
    out.push_back(
        {.code = "online-needs-licence",
         .message =
             fmt::format("from 24.10 on the vendor asks for a licence of the interface that "
                         "switches chunks (redaction), and the policy does not say that there is "
                         "one; it is version {}",
                         node.version),
         .hint = "say redaction_interface_licensed: true in the policy if your licence covers it, "
                 "or use the strategy offline or rolling"});
  }
  return out;
}

std::vector<Obstacle> offline_obstacles(const NodeSnapshot& node) {
  std::vector<Obstacle> out;
  if (!node.has_agent()) {
    out.push_back({.code = "offline-needs-agent",
                   .message = "it has no agent that could stop it and scavenge its files",
                   .hint = "install verger-agent on that machine, or use the strategy rolling"});
  } else if (node.agent && !node.agent->service_control) {
    out.push_back({.code = "offline-needs-service-control",
                   .message = "its agent has no way to stop and start the server",
                   .hint = "give it --service-unit, or --start-command and --stop-command"});
  } else if (node.agent && !node.agent->offline_problem.empty()) {
    out.push_back(
        {.code = "offline-wrong-user",
         .message = node.agent->offline_problem,
         .hint = "run the agent as the user whose the files are, or use the strategy rolling"});
  }
  return out;
}

ChosenWay choose_way(const NodeSnapshot& node, const ScavengePolicy& wanted, bool may_stop,
                     const NodeEstimate* estimate) {
  switch (wanted.strategy) {
    case Strategy::kRolling:
    case Strategy::kFollowersOnly:
    case Strategy::kConcurrent:
      break;
    case Strategy::kOffline:
      return {.way = ScavengeWay::kOffline};
    case Strategy::kOnline:
      return {.way = ScavengeWay::kOnline};
    case Strategy::kAuto:
      return choose_by_itself(node, wanted, may_stop, estimate);
  }
  return {};
}

}  // namespace verger::planner::detail
