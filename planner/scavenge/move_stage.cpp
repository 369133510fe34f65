#include "planner/scavenge/move_stage.h"

#include "planner/detail/stages.h"
#include "planner/detail/text.h"

namespace verger::planner::detail {
namespace {

struct Priorities {
  std::int32_t lowest = 0;    ///< no node with another one loses against it
  std::int32_t original = 0;  ///< to be set again
};

Priorities priorities_of(const ScavengeOrder& order, const NodeSnapshot& node) {
  const auto lowest = order.losing_priority(node);
  // A value that an earlier run may have left behind is not restored.
  const bool left_behind = node.priority == lowest || node.priority == -1;
  return {lowest, left_behind ? 0 : node.priority};
}

Step& add_step(Stage& stage, const char* prefix, const char* kind, const NodeSnapshot& node) {
  auto& step = add_alone(stage);
  step.id = joined(prefix, node.name);
  step.kind = kind;
  step.node = node.name;
  return step;
}

Step& add_priority_step(Stage& stage, const char* prefix, const NodeSnapshot& node,
                        std::int32_t priority, std::int32_t restore, bool only_if_leader) {
  auto& step = add_step(stage, prefix, "set_priority", node);
  add_parameter(step, "agent", node.has_agent());
  add_parameter(step, "onlyIfLeader", only_if_leader);
  add_parameter(step, "priority", priority);
  add_parameter(step, "restore", restore);
  step.observe = "gossip shows the priority";
  step.attempts = 3;
  step.expected = {1'000, 5'000};
  return step;
}

void add_lower_step(Stage& stage, const ScavengeOrder& order, const NodeSnapshot& node,
                    const Priorities& priorities) {
  auto& step =
      add_priority_step(stage, "lower-", node, priorities.lowest, priorities.original, true);
  step.gates = order.move_gates;
  step.act = joined("set the priority of ", node.name, " to ", std::to_string(priorities.lowest));
  step.undo = joined("set it back to ", std::to_string(priorities.original));
  step.reason = "with equal priorities the node that resigns may win again";
  step.cost = StepCost{false, order.margin(node)};
}

/// Directly before the resignation, so that what ran until then is known.
void add_note_step(Stage& stage, const NodeSnapshot& node) {
  auto& step = add_step(stage, "note-", "note_server_work", node);
  step.gates = {{"cluster-identity", 0}};
  step.act = "note which projections and persistent subscriptions run";
  step.observe = joined(node.name, " lists them, or does not offer them");
  step.reason = "they move with the leader, and do not always start again";
  step.expected = {0, 1'000};
}

void add_resign_step(Stage& stage, const ScavengeOrder& order, const NodeSnapshot& node) {
  auto& step = add_step(stage, "resign-", "resign", node);
  add_parameter(step, "agent", node.has_agent());
  add_parameter(step, "holdMs", order.policy.limits.leader_hold_ms);
  add_parameter(step, "settleMs", order.policy.limits.own_move_settle_ms());
  step.gates = order.resign_gates;
  step.act = joined("make ", node.name, " resign");
  step.observe = joined("all voters show another leader, unchanged for ",
                        std::to_string(order.policy.limits.leader_hold_ms), " ms");
  step.reason = "the node that serves the writes is not scavenged";
  step.attempts = order.policy.limits.resign_attempts;
  step.expected = {order.policy.limits.leader_hold_ms + 300,
                   order.policy.limits.leader_hold_ms + 60'000};
  step.cost = StepCost{true, order.margin(node)};
}

/// One leader of sixteen was seen to end by itself in resigning (node-interface.md §3.4).
void add_start_step(Stage& stage, const ScavengeOrder& order, const NodeSnapshot& node) {
  auto& step = add_step(stage, "start-", "start_server", node);
  add_parameter(step, "graceMs", order.policy.limits.own_move_settle_ms());
  step.gates = {{"cluster-identity", 0}};
  step.act = joined("start the server of ", node.name, " where resigning made it end");
  step.observe = "it answers, in its role";
  step.reason = "a leader may end by itself in resigning";
  step.attempts = 3;
  step.expected = {0, 60'000};
}

void add_restore_step(Stage& stage, const NodeSnapshot& node, const Priorities& priorities) {
  auto& step =
      add_priority_step(stage, "restore-", node, priorities.original, priorities.original, false);
  step.gates = {{"cluster-identity", 0}};
  step.act =
      joined("set the priority of ", node.name, " back to ", std::to_string(priorities.original));
  step.reason = "the run leaves the cluster as it was";
}

}  // namespace

Stage move_stage(const ScavengeOrder& order, const NodeSnapshot& node, std::string if_deferred) {
  Stage stage;
  stage.id = joined("move-", node.name);
  stage.title = joined("move the leadership away from ", node.name);
  stage.deadline_ms = order.policy.limits.move_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  stage.on_failure = FailureRule::kUndoAll;
  stage.if_deferred = std::move(if_deferred);

  const auto priorities = priorities_of(order, node);
  stage.groups.reserve(5);
  add_lower_step(stage, order, node, priorities);
  if (order.policy.limits.check_server_work) {
    add_note_step(stage, node);
  }
  add_resign_step(stage, order, node);
  if (node.agent && node.agent->service_control) {
    add_start_step(stage, order, node);
  }
  add_restore_step(stage, node, priorities);
  return stage;
}

std::optional<Stage> work_stage(const ScavengeOrder& order, const NodeSnapshot& node,
                                std::string if_deferred) {
  if (!order.policy.limits.check_server_work) {
    return std::nullopt;
  }
  Stage stage;
  stage.id = joined("work-", node.name);
  stage.title = "see that projections and subscriptions run again";
  // The step ends by itself; this is for a cluster that cannot be looked at.
  stage.deadline_ms = 3 * order.policy.limits.server_work_back_ms +
                      order.policy.limits.server_work_wait_ms +
                      order.policy.limits.move_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  stage.on_failure = FailureRule::kSkipNode;
  stage.if_deferred = std::move(if_deferred);
  auto& step = add_alone(stage);
  step.id = joined("check-", node.name);
  step.kind = "check_server_work";
  add_parameter(step, "backMs", order.policy.limits.server_work_back_ms);
  add_parameter(step, "restart", order.policy.limits.restart_server_work);
  add_parameter(step, "waitMs", order.policy.limits.server_work_wait_ms);
  step.gates = {{"cluster-identity", 0}};
  step.act = order.policy.limits.restart_server_work
                 ? "start what ran before the move and does not run on the new leader"
                 : "compare what runs with what ran before the move";
  step.observe = "the new leader lists them as running";
  step.reason = "they move with the leader, and do not always start again";
  step.attempts = 2;  // one that starts them; the second is never begun
  step.expected = {0, 30'000};
  return stage;
}

}  // namespace verger::planner::detail
