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

}  // namespace

Stage move_stage(const ScavengeOrder& order, const NodeSnapshot& node, std::string if_put_off) {
  Stage stage;
  stage.id = fmt::format("move-{}", node.name);
  stage.title = fmt::format("move the leadership away from {}", node.name);
  stage.deadline_ms = order.policy.move_deadline_ms;
  stage.undo_deadline_ms = order.policy.undo_deadline_ms;
  stage.on_failure = FailureRule::kUndoAll;
  stage.if_put_off = std::move(if_put_off);

  const auto lowest = order.losing_priority(node);
  // What an earlier run may have left behind, nobody wants back.
  const bool left_behind = node.priority == lowest || node.priority == -1;
  const std::int32_t original = left_behind ? 0 : node.priority;
  Step lower;
  lower.id = fmt::format("lower-{}", node.name);
  lower.kind = "set_priority";
  lower.node = node.name;
  lower.parameters.emplace("priority", lowest);
  lower.parameters.emplace("restore", original);
  lower.parameters.emplace("onlyIfLeader", true);
  lower.parameters.emplace("agent", node.has_agent());
  lower.gates = move_gates(order);
  lower.act = fmt::format("set the priority of {} to {}", node.name, lowest);
  lower.observe = "gossip shows the priority";
  lower.undo = fmt::format("set it back to {}", original);
  lower.reason = "with equal priorities the node that resigns may win again";
  lower.attempts = 3;
  lower.expected = {1'000, 5'000};
  lower.cost = StepCost{false, order.margin(node)};

  Step resign;
  resign.id = fmt::format("resign-{}", node.name);
  resign.kind = "resign";
  resign.node = node.name;
  resign.parameters.emplace("holdMs", order.policy.leader_hold_ms);
  resign.parameters.emplace("settleMs", order.policy.election_settle_ms);
  resign.parameters.emplace("agent", node.has_agent());
  resign.gates = move_gates(order);
  resign.gates.push_back({"nobody-scavenges", 0});
  resign.gates.push_back({"leader-settled", order.policy.election_settle_ms});
  resign.act = fmt::format("make {} resign", node.name);
  resign.observe = fmt::format("all voters show another leader, unchanged for {} ms",
                               order.policy.leader_hold_ms);
  resign.reason = "the node that serves the writes is not scavenged";
  resign.attempts = order.policy.resign_attempts;
  resign.expected = {order.policy.leader_hold_ms + 300, order.policy.leader_hold_ms + 60'000};
  resign.cost = StepCost{true, order.margin(node)};

  // One leader of sixteen was seen to end by itself in resigning (node-interface.md §3.4).
  Step start;
  start.id = fmt::format("start-{}", node.name);
  start.kind = "start_server";
  start.node = node.name;
  start.parameters.emplace("graceMs", order.policy.election_settle_ms);
  start.gates = {{"right-cluster", 0}};
  start.act = fmt::format("start the server of {} where resigning made it end", node.name);
  start.observe = "it answers, in its role";
  start.reason = "a leader may end by itself in resigning";
  start.attempts = 3;
  start.expected = {0, 60'000};

  Step restore;
  restore.id = fmt::format("restore-{}", node.name);
  restore.kind = "set_priority";
  restore.node = node.name;
  restore.parameters.emplace("priority", original);
  restore.parameters.emplace("restore", original);
  restore.parameters.emplace("onlyIfLeader", false);
  restore.parameters.emplace("agent", node.has_agent());
  restore.gates = {{"right-cluster", 0}};
  restore.act = fmt::format("set the priority of {} back to {}", node.name, original);
  restore.observe = "gossip shows the priority";
  restore.reason = "the run leaves the cluster as it was";
  restore.attempts = 3;
  restore.expected = {1'000, 5'000};

  stage.groups.reserve(4);
  stage.groups.push_back(alone(std::move(lower)));
  stage.groups.push_back(alone(std::move(resign)));
  if (node.agent && node.agent->service_control) {
    stage.groups.push_back(alone(std::move(start)));
  }
  stage.groups.push_back(alone(std::move(restore)));
  return stage;
}

}  // namespace verger::planner::detail
