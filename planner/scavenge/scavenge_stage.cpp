#include "planner/scavenge/scavenge_stage.h"

#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/stages.h"
#include "planner/detail/text.h"

namespace verger::planner::detail {

DurationRange expected_scavenge(const History& history, const NodeSnapshot& node,
                                const ScavengePace& pace) {
  // A percentage that is refused is requested, too.
  const auto percent = std::clamp<std::int64_t>(pace.throttle_percent, 1, 100);
  const auto throttled = [&](std::int64_t working_ms) { return working_ms * 100 / percent; };
  DurationRange range;
  std::vector<std::int64_t> times;
  for (const auto& past : history.durations) {
    if (past.kind == pace.kind && past.node == node.name && past.duration_ms > 0) {
      times.push_back(throttled(past.duration_ms * past.throttle_percent / 100));
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
    range.low_ms = throttled(node.agent->database_bytes / 200'000) + pace.around.low_ms;
    range.high_ms =
        throttled(node.agent->database_bytes / pace.slow_bytes_per_ms) + pace.around.high_ms;
  }
  return range;
}

std::int64_t throttle_of(const ScavengeOrder& order, const NodeSnapshot& node) {
  const auto own = &node == order.leader    ? order.scavenge.leader_throttle_percent
                   : node.read_only_replica ? order.scavenge.replica_throttle_percent
                                            : 0;
  return own == 0 ? order.scavenge.throttle_percent : own;
}

std::int32_t threads_of(const ScavengeOrder& order, const NodeSnapshot& node) {
  const auto own = &node == order.leader    ? order.scavenge.leader_threads
                   : node.read_only_replica ? order.scavenge.replica_threads
                                            : 0;
  return own == 0 ? order.scavenge.threads : own;
}

namespace {

void add_scavenge_step(Stage& stage, const ScavengeOrder& order, const History& history,
                       const NodeSnapshot& node, std::string_view prefix, std::string_view target,
                       std::int64_t point, bool sync_only, std::string reason) {
  auto& step = add_alone(stage);
  step.id = joined(prefix, "-", node.name);
  step.kind = "scavenge";
  step.node = node.name;
  const auto throttle = throttle_of(order, node);
  add_parameter(step, "agent", node.has_agent());
  if (order.scavenge.foreign == ForeignRule::kAdopt) {
    add_parameter(step, "foreign", to_string(order.scavenge.foreign));
  }
  add_parameter(step, "onClose", to_string(order.policy.pauses.on_close));
  add_parameter(step, "onPause", to_string(order.policy.pauses.on_pause));
  if (point >= 0) {
    add_parameter(step, "point", point);
  }
  add_parameter(step, "syncOnly", sync_only);
  add_parameter(step, "target", target);
  add_parameter(step, "threads", threads_of(order, node));
  add_parameter(step, "threshold", order.scavenge.threshold);
  add_parameter(step, "throttlePercent", throttle);
  step.gates = order.scavenge_gates(node);
  step.act = sync_only
                 ? joined("start a scavenge on ", node.name, " with syncOnly=true")
                 : joined("start a scavenge on ", node.name, " that creates a scavenge point");
  step.observe = node.has_agent()
                     ? "the agent sees the node's scavenge state done with the point, nothing runs"
                     : "the node's scavenge log ends in Success without error, nothing runs";
  step.reason = std::move(reason);
  step.attempts = order.scavenge.scavenge_attempts;
  step.expected = expected_scavenge(history, node, {.throttle_percent = throttle});
  step.cost = StepCost{false, order.margin(node)};
}

}  // namespace

NodeStage scavenge_stage(const ScavengeOrder& order, const History& history,
                         const NodeSnapshot& node) {
  Stage stage;
  stage.id = joined("scavenge-", node.name);
  stage.title = joined("scavenge ", node.name, " (", to_string(node.role), ")");
  stage.deadline_ms = order.scavenge.scavenge_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  std::string row;
  stage.groups.reserve(3);
  const auto add = [&](std::string_view prefix, std::string_view target, std::int64_t point,
                       bool sync_only, std::string reason) {
    add_scavenge_step(stage, order, history, node, prefix, target, point, sync_only,
                      std::move(reason));
  };
  const bool creates = &node == order.creator && !order.makes_point_first();

  if (node.agent) {
    const auto& facts = *node.agent;
    if (facts.unfinished) {
      const auto number = facts.unfinished->point.number;
      add("finish", "number", number, true,
          fmt::format("its scavenge to point {} is unfinished and would be resumed "
                      "by any start",
                      number));
      row += fmt::format("row 1 (resumes point {} at {}), then ", number, facts.unfinished->stage);
    }
    const auto reached = facts.unfinished      ? facts.unfinished->point.number
                         : facts.last_finished ? facts.last_finished->number
                                               : -1;
    const bool behind = order.latest && reached < order.latest->number;
    if (creates && behind) {
      add("adopt", "number", order.latest->number, true,
          fmt::format("only a node that is done with point {}, the log's latest, "
                      "creates a new one",
                      order.latest->number));
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
    add("finish", "open", -1, true,
        "there is no agent to see whether a scavenge is unfinished; one that is "
        "would be resumed by any start");
    if (creates) {
      add("adopt", "open", -1, true,
          "there is no agent to see whether the log has an unreached point; one "
          "that is there would be taken instead of a new one");
    }
    row = creates ? "cannot be seen without an agent: starts with syncOnly first finish what is "
                    "open, then one creates the new point"
                  : "cannot be seen without an agent: a start with syncOnly first finishes what is "
                    "open, then one takes the new point";
  }

  if (creates) {
    add("scavenge", "new", -1, false,
        &node == order.leader
            ? "it is the only voter, so it creates the point that the run is about"
            : "the first follower creates the point that all nodes share");
  } else {
    add("scavenge", "shared", -1, true,
        &node == order.leader    ? "the leader comes last, as a follower"
        : node.read_only_replica ? "replicas follow the voters"
                                 : "follows to the shared point");
  }
  return {std::move(stage), NodeForecast{node.name, std::move(row)}};
}

}  // namespace verger::planner::detail
