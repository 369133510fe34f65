#include "planner/detail/move_stage.h"

#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/scavenge_stage.h"
#include "planner/detail/stages.h"

namespace verger::planner::detail {
namespace {

std::vector<Gate> move_gates(const ScavengeOrder& order) {
  auto gates = cluster_gates(order);
  // The node that resigns stays up.
  std::ranges::find(gates, "quorum-margin", &Gate::name)->limit = 0;
  gates.push_back({"hours", 0});
  return gates;
}

struct Priorities {
  std::int32_t lowest = 0;    ///< nobody with another one loses against it
  std::int32_t original = 0;  ///< to be set again
};

Priorities priorities_of(const ScavengeOrder& order, const NodeSnapshot& node) {
  const auto lowest = order.losing_priority(node);
  // What an earlier run may have left behind, nobody wants back.
  const bool left_behind = node.priority == lowest || node.priority == -1;
  return {lowest, left_behind ? 0 : node.priority};
}

Step lower_step(const ScavengeOrder& order, const NodeSnapshot& node,
                const Priorities& priorities) {
  Step step;
  step.id = fmt::format("lower-{}", node.name);
  step.kind = "set_priority";
  step.node = node.name;
  step.parameters.emplace("priority", priorities.lowest);
  step.parameters.emplace("restore", priorities.original);
  step.parameters.emplace("onlyIfLeader", true);
  step.parameters.emplace("agent", node.has_agent());
  step.gates = move_gates(order);
  step.act = fmt::format("set the priority of {} to {}", node.name, priorities.lowest);
  step.observe = "gossip shows the priority";
  step.undo = fmt::format("set it back to {}", priorities.original);
  step.reason = "with equal priorities the node that resigns may win again";
  step.attempts = 3;
  step.expected = {1'000, 5'000};
  step.cost = StepCost{false, order.margin(node)};
  return step;
}

Step resign_step(const ScavengeOrder& order, const NodeSnapshot& node) {
  Step step;
  step.id = fmt::format("resign-{}", node.name);
  step.kind = "resign";
  step.node = node.name;
  step.parameters.emplace("holdMs", order.policy.leader_hold_ms);
  step.parameters.emplace("settleMs", order.policy.election_settle_ms);
  step.parameters.emplace("agent", node.has_agent());
  step.gates = move_gates(order);
  step.gates.push_back({"nobody-scavenges", 0});
  step.gates.push_back({"leader-settled", order.policy.election_settle_ms});
  step.act = fmt::format("make {} resign", node.name);
  step.observe = fmt::format("all voters show another leader, unchanged for {} ms",
                             order.policy.leader_hold_ms);
  step.reason = "the node that serves the writes is not scavenged";
  step.attempts = order.policy.resign_attempts;
  step.expected = {order.policy.leader_hold_ms + 300, order.policy.leader_hold_ms + 60'000};
  step.cost = StepCost{true, order.margin(node)};
  return step;
}

/// One leader of sixteen was seen to end by itself in resigning (node-interface.md §3.4).
Step start_step(const ScavengeOrder& order, const NodeSnapshot& node) {
  Step step;
  step.id = fmt::format("start-{}", node.name);
  step.kind = "start_server";
  step.node = node.name;
  step.parameters.emplace("graceMs", order.policy.election_settle_ms);
  step.gates = {{"right-cluster", 0}};
  step.act = fmt::format("start the server of {} where resigning made it end", node.name);
  step.observe = "it answers, in its role";
  step.reason = "a leader may end by itself in resigning";
  step.attempts = 3;
  step.expected = {0, 60'000};
  return step;
}

Step restore_step(const NodeSnapshot& node, const Priorities& priorities) {
  Step step;
  step.id = fmt::format("restore-{}", node.name);
  step.kind = "set_priority";
  step.node = node.name;
  step.parameters.emplace("priority", priorities.original);
  step.parameters.emplace("restore", priorities.original);
  step.parameters.emplace("onlyIfLeader", false);
  step.parameters.emplace("agent", node.has_agent());
  step.gates = {{"right-cluster", 0}};
  step.act = fmt::format("set the priority of {} back to {}", node.name, priorities.original);
  step.observe = "gossip shows the priority";
  step.reason = "the run leaves the cluster as it was";
  step.attempts = 3;
  step.expected = {1'000, 5'000};
  return step;
}

}  // namespace

Stage move_stage(const ScavengeOrder& order, const NodeSnapshot& node, std::string if_put_off) {
  Stage stage;
  stage.id = fmt::format("move-{}", node.name);
  stage.title = fmt::format("move the leadership away from {}", node.name);
  stage.deadline_ms = order.policy.move_deadline_ms;
  stage.undo_deadline_ms = order.policy.undo_deadline_ms;
  stage.on_failure = FailureRule::kUndoAll;
  stage.if_put_off = std::move(if_put_off);

  const auto priorities = priorities_of(order, node);
  stage.groups.reserve(4);
  stage.groups.push_back(alone(lower_step(order, node, priorities)));
  stage.groups.push_back(alone(resign_step(order, node)));
  if (node.agent && node.agent->service_control) {
    stage.groups.push_back(alone(start_step(order, node)));
  }
  stage.groups.push_back(alone(restore_step(node, priorities)));
  return stage;
}

}  // namespace verger::planner::detail
