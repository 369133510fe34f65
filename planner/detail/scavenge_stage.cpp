#include "planner/detail/scavenge_stage.h"

#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/stages.h"

namespace verger::planner::detail {

std::vector<Gate> cluster_gates(const ScavengeOrder& order) {
  const auto& policy = order.policy;
  std::vector<Gate> gates{{"right-cluster", 0},
                          {"agents-answer", 0},
                          {"voters-alive", 0},
                          {"one-leader", 0},
                          {"quorum-margin", policy.strategy == Strategy::kOffline ? 1 : 0},
                          {"lag-below", policy.lag_limit_bytes},
                          {"lag-falling", 0},
                          {"clocks", policy.clock_skew_limit_ms}};
  const auto& nodes = order.snapshot.nodes;
  if (std::ranges::any_of(nodes, &NodeSnapshot::has_agent)) {
    gates.push_back({"no-other-work", 0});
  }
  if (std::ranges::any_of(nodes, [](const NodeSnapshot& node) {
        return node.url.starts_with("https") || node.agent_url.starts_with("https");
      })) {
    gates.push_back({"certificates", policy.certificate_margin_ms});
  }
  if (!policy.queries.empty()) {
    gates.push_back({"queries", 0});
  }
  return gates;
}

std::vector<Gate> scavenge_gates(const ScavengeOrder& order, const NodeSnapshot& node) {
  auto gates = cluster_gates(order);
  gates.push_back({"auto-scavenge-off", 0});
  gates.push_back(
      {order.policy.foreign == ForeignRule::kAdopt ? "others-idle" : "nobody-scavenges", 0});
  gates.push_back({"index-idle", 0});
  gates.push_back({"disk", order.policy.disk_reserve_bytes});
  if (!node.read_only_replica && order.moves_leader()) {
    gates.push_back({"not-leader", 0});
  }
  gates.push_back({"hours", 0});
  return gates;
}

DurationRange expected_scavenge(const History& history, const NodeSnapshot& node,
                                std::string_view kind, std::int64_t slow_bytes_per_ms) {
  DurationRange range;
  std::vector<std::int64_t> times;
  for (const auto& past : history.durations) {
    if (past.kind == kind && past.node == node.name && past.duration_ms > 0) {
      times.push_back(past.duration_ms);
    }
  }
  std::ranges::sort(times);
  if (!times.empty()) {
    // From P5 to P95; where fewer than twenty are known, to a quarter above the longest.
    range.low_ms = times[times.size() / 20];
    range.high_ms =
        times.size() >= 20 ? times[(times.size() * 95 - 1) / 100] : times.back() + times.back() / 4;
  } else if (node.agent && node.agent->database_bytes > 0) {
    // Without a history: between reading everything at 200 MB/s and rewriting it slowly.
    range.low_ms = node.agent->database_bytes / 200'000;
    range.high_ms = node.agent->database_bytes / slow_bytes_per_ms;
  }
  return range;
}

namespace {

Step scavenge_step(const ScavengeOrder& order, const History& history, const NodeSnapshot& node,
                   std::string_view prefix, std::string_view target, std::int64_t point,
                   bool sync_only, std::string reason) {
  Step step;
  step.id = fmt::format("{}-{}", prefix, node.name);
  step.kind = "scavenge";
  step.node = node.name;
  auto& parameters = step.parameters;
  parameters.emplace("target", target);
  parameters.emplace("syncOnly", sync_only);
  const auto or_default = [](std::int32_t own, std::int32_t common) {
    return own == 0 ? common : own;
  };
  const bool leads = &node == order.leader;
  const bool replica = node.read_only_replica;
  parameters.emplace("threads", or_default(leads     ? order.policy.leader_threads
                                           : replica ? order.policy.replica_threads
                                                     : 0,
                                           order.policy.threads));
  parameters.emplace("threshold", order.policy.threshold);
  parameters.emplace("throttlePercent", or_default(leads     ? order.policy.leader_throttle_percent
                                                   : replica ? order.policy.replica_throttle_percent
                                                             : 0,
                                                   order.policy.throttle_percent));
  parameters.emplace("agent", node.has_agent());
  parameters.emplace("onPause", to_string(order.policy.on_pause));
  parameters.emplace("onClose", to_string(order.policy.on_close));
  if (order.policy.foreign == ForeignRule::kAdopt) {
    parameters.emplace("foreign", to_string(order.policy.foreign));
  }
  if (point >= 0) {
    step.parameters["point"] = point;
  }
  step.gates = scavenge_gates(order, node);
  step.act = sync_only
                 ? fmt::format("start a scavenge on {} with syncOnly=true", node.name)
                 : fmt::format("start a scavenge on {} that creates a scavenge point", node.name);
  step.observe = node.has_agent()
                     ? "the agent sees the node's scavenge state done with the point, nothing runs"
                     : "the node's scavenge log ends in Success without error, nothing runs";
  step.reason = std::move(reason);
  step.attempts = order.policy.scavenge_attempts;
  step.expected = expected_scavenge(history, node);
  step.cost = StepCost{false, order.margin(node)};
  return step;
}

}  // namespace

NodeStage scavenge_stage(const ScavengeOrder& order, const History& history,
                         const NodeSnapshot& node) {
  Stage stage;
  stage.id = fmt::format("scavenge-{}", node.name);
  stage.title = fmt::format("scavenge {} ({})", node.name, to_string(node.role));
  stage.deadline_ms = order.policy.scavenge_deadline_ms;
  stage.undo_deadline_ms = order.policy.undo_deadline_ms;
  std::string row;
  stage.groups.reserve(3);
  const auto add = [&stage](Step step) { stage.groups.push_back(alone(std::move(step))); };
  const bool creates = &node == order.creator;

  if (node.agent) {
    const auto& facts = *node.agent;
    if (facts.unfinished) {
      const auto number = facts.unfinished->point.number;
      add(scavenge_step(order, history, node, "finish", "number", number, true,
                        fmt::format("its scavenge to point {} is unfinished and would be resumed "
                                    "by any start",
                                    number)));
      row += fmt::format("row 1 (resumes point {} at {}), then ", number, facts.unfinished->stage);
    }
    const auto reached = facts.unfinished      ? facts.unfinished->point.number
                         : facts.last_finished ? facts.last_finished->number
                                               : -1;
    const bool behind = order.latest && reached < order.latest->number;
    if (creates && behind) {
      add(scavenge_step(order, history, node, "adopt", "number", order.latest->number, true,
                        fmt::format("only a node that is done with point {}, the log's latest, "
                                    "creates a new one",
                                    order.latest->number)));
      row +=
          fmt::format("row {} (adopts point {}), then ", reached < 0 ? 4 : 5, order.latest->number);
    }
    if (creates) {
      row += order.latest          ? "row 6: creates the new point"
             : facts.last_finished ? "row 8: creates the new point"
                                   : "row 2: creates the new point";
    } else {
      row += reached < 0 ? "row 4: takes the new point" : "row 5: takes the new point";
    }
  } else {
    add(scavenge_step(order, history, node, "finish", "open", -1, true,
                      "there is no agent to see whether a scavenge is unfinished; one that is "
                      "would be resumed by any start"));
    if (creates) {
      add(scavenge_step(order, history, node, "adopt", "open", -1, true,
                        "there is no agent to see whether the log has an unreached point; one "
                        "that is there would be taken instead of a new one"));
    }
    row = creates ? "cannot be seen without an agent; rows 1, 4, 5 are cleared by starts with "
                    "syncOnly first, then row 2, 6 or 8"
                  : "cannot be seen without an agent; row 1 or 7 first, then row 4 or 5";
  }

  if (creates) {
    add(scavenge_step(order, history, node, "scavenge", "new", -1, false,
                      &node == order.leader
                          ? "it is the only voter, so it creates the point that the run is about"
                          : "the first follower creates the point that all nodes share"));
  } else {
    add(scavenge_step(order, history, node, "scavenge", "shared", -1, true,
                      &node == order.leader    ? "the leader comes last, as a follower"
                      : node.read_only_replica ? "replicas follow the voters"
                                               : "follows to the shared point"));
  }
  return {std::move(stage), NodeForecast{node.name, std::move(row)}};
}

}  // namespace verger::planner::detail
