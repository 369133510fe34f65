#include "planner/scavenge/offline_stages.h"

#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/heal_parameter.h"
#include "planner/detail/stages.h"

namespace verger::planner::detail {
namespace {

/// Of a server, until it has caught up again: 25 to 50 s were seen on an idle cluster; a large
/// index takes minutes to open.
constexpr DurationRange kStopAndStart{.low_ms = 20'000, .high_ms = 300'000};
/// Of a copy of the small files, the switches, and the server's own last stages.
constexpr DurationRange kSwitchAndIndex{.low_ms = 2'000, .high_ms = 600'000};

/// Number of the point that all can share without making one; -1: one has to be made.
std::int64_t unreached_point(const ScavengeOrder& order) {
  if (!order.latest) {
    return -1;
  }
  const auto number = order.latest->number;
  const bool unreached = std::ranges::none_of(order.included(), [number](const auto* node) {
    return node->agent && node->agent->last_finished &&
           node->agent->last_finished->number >= number;
  });
  return unreached ? number : -1;
}

}  // namespace

Stage point_stage(const ScavengeOrder& order) {
  const auto existing = unreached_point(order);
  const auto& maker = *order.creator;
  Step step;
  step.id = "point-" + maker.name;
  step.kind = "scavenge_point";
  step.node = maker.name;
  step.parameters.emplace("point", existing);
  step.parameters.emplace("threshold", order.scavenge.threshold);
  step.gates = order.scavenge_gates(maker);
  std::erase_if(step.gates, [](const Gate& gate) { return gate.name == "not-leader"; });
  std::ranges::find(step.gates, "quorum-margin", &Gate::name)->limit = 0;  // no node stops here
  if (existing >= 0) {
    step.act = fmt::format("nothing: point {} is in the log, and no node has reached it", existing);
    step.observe = "the point is seen";
    step.reason = "all nodes are scavenged to one point, whose number later steps need";
  } else {
    step.act =
        fmt::format("start a scavenge on {} and stop it once its point is written", maker.name);
    step.observe = "the point is in the log and no scavenge runs";
    step.reason = "only a running node can write the point that all nodes share";
  }
  step.attempts = order.scavenge.scavenge_attempts;
  step.expected = {1'000, 60'000};
  step.cost = StepCost{false, order.margin(maker)};
  Stage stage;
  stage.id = "point";
  stage.title = existing >= 0 ? fmt::format("use scavenge point {}", existing)
                              : std::string("make the scavenge point");
  stage.deadline_ms = order.policy.limits.move_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  stage.groups.push_back(alone(std::move(step)));
  return stage;
}

NodeStage offline_stage(const ScavengeOrder& order, const History& history,
                        const NodeSnapshot& node) {
  Step step;
  step.id = "offline-" + node.name;
  step.kind = "offline_scavenge";
  step.node = node.name;
  step.parameters.emplace("threads", threads_of(order, node));
  step.parameters.emplace("onPause", to_string(order.policy.pauses.on_pause));
  step.parameters.emplace("onClose", to_string(order.policy.pauses.on_close));
  if (order.policy.limits.service_deadline_ms != RunLimits{}.service_deadline_ms) {
    step.parameters.emplace("serviceDeadlineMs",
                            order.policy.limits.service_deadline_ms);  // else the agent's
  }
  add_heal_filter(step, order.scavenge.heal_existence_filter);
  step.gates = order.scavenge_gates(node);
  step.act = fmt::format("stop {}, let its agent scavenge the files, start it", node.name);
  step.observe = "its agent sees the files done with the point, and the node has caught up";
  step.undo = fmt::format("start {}", node.name);
  step.reason = &node == order.leader    ? "the leader comes last, after it resigned"
                : node.read_only_replica ? "replicas follow the voters"
                                         : "one node at a time, so that a quorum stays";
  step.attempts = order.scavenge.scavenge_attempts;
  step.expected = expected_scavenge(
      history, node, {.kind = step.kind, .slow_bytes_per_ms = 50'000, .around = kStopAndStart});
  step.cost = StepCost{false, order.margin(node)};
  Stage stage;
  stage.id = "scavenge-" + node.name;
  stage.title = fmt::format("scavenge the files of {} ({})", node.name, to_string(node.role));
  stage.deadline_ms = order.scavenge.scavenge_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  stage.on_failure = FailureRule::kUndoAll;  // a node must not stay stopped
  stage.groups.push_back(alone(std::move(step)));
  const auto unfinished = node.agent && node.agent->unfinished;
  return {std::move(stage),
          NodeForecast{node.name,
                       unfinished ? fmt::format("is stopped; finishes point {} first",
                                                node.agent->unfinished->point.number)
                                  : std::string("is stopped; its files take the shared point")}};
}

NodeStage online_stage(const ScavengeOrder& order, const History& history,
                       const NodeSnapshot& node) {
  const auto throttle = throttle_of(order, node);
  Step step;
  step.id = "online-" + node.name;
  step.kind = "online_scavenge";
  step.node = node.name;
  step.parameters.emplace("onClose", to_string(order.policy.pauses.on_close));
  step.parameters.emplace("onPause", to_string(order.policy.pauses.on_pause));
  step.parameters.emplace("threads", threads_of(order, node));
  step.parameters.emplace("throttlePercent", throttle);
  step.gates = order.scavenge_gates(node);
  step.act = fmt::format(
      "let the agent of {} scavenge its chunks beside the running server, and switch the new ones "
      "into it",
      node.name);
  step.observe = "its agent sees the node's scavenge state done with the point, nothing runs";
  step.reason = &node == order.leader
                    ? (order.moves_leader() ? "the leader comes last, as a follower"
                                            : "the leader comes last, while it leads")
                : node.read_only_replica ? "replicas follow the voters"
                                         : "one node at a time, so that one is busy";
  step.attempts = order.scavenge.scavenge_attempts;
  step.expected = expected_scavenge(history, node,
                                    {.kind = step.kind,
                                     .slow_bytes_per_ms = 50'000,
                                     .throttle_percent = throttle,
                                     .around = kSwitchAndIndex});
  step.cost = StepCost{false, order.margin(node)};
  Stage stage;
  stage.id = "scavenge-" + node.name;
  stage.title =
      fmt::format("scavenge {} ({}) beside its running server", node.name, to_string(node.role));
  stage.deadline_ms = order.scavenge.scavenge_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  stage.groups.push_back(alone(std::move(step)));
  const auto unfinished = node.agent && node.agent->unfinished;
  return {std::move(stage),
          NodeForecast{node.name,
                       unfinished ? fmt::format("serves on; finishes point {} first",
                                                node.agent->unfinished->point.number)
                                  : std::string("serves on; its chunks take the shared point")}};
}

}  // namespace verger::planner::detail
