#include "controller/executor/detail/node_watch.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "controller/executor/events.h"

namespace verger::controller::detail {
namespace {

/// Another node takes its place (kReplacesParameter).
bool is_replaced(const RunState& state, const planner::NodeSnapshot& node) {
  const planner::Json name(node.name);
  for (const auto& stage : state.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto found = step.parameters.find(kReplacesParameter);
        if (found == step.parameters.end()) {
          continue;
        }
        const auto* several = found->second.as_array();
        if (found->second == name ||
            (several != nullptr && std::ranges::find(*several, name) != several->end())) {
          return true;
        }
      }
    }
  }
  return false;
}

/// Its agent says that it is stopped, and a step of the present stage has stopped it.
bool is_kept_stopped(RunContext& run, const planner::NodeSnapshot& node) {
  if (!node.stopped) {
    return false;
  }
  for (const auto& stage : run.state().plan->stages) {
    const auto status = run.state().stages.at(stage.id).status;
    if (status != StageStatus::kRunning && status != StageStatus::kUndoing) {
      continue;
    }
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto* kind = run.parts().kinds.find(step.kind);
        if (step.node == node.name && kind != nullptr && kind->stops_server() &&
            run.state().steps.at(step.id).attempt > 0) {
          return true;
        }
      }
    }
  }
  return false;
}

void track_leader(RunContext& run, const planner::ClusterSnapshot& snapshot) {
  const auto* leader = snapshot.leader();
  const auto& state = run.state();
  if (leader == nullptr || snapshot.leader_stable_ms < state.plan->policy.limits.leader_hold_ms ||
      leader->name == state.leader || has_ended(state.status)) {
    return;
  }
  if (state.leader.empty()) {
    run.record(events::kLeaderSeen, {{"node", leader->name}});
    return;
  }
  // Planned is a move away from a node that a step of ours ordered to give up the leadership.
  bool planned = false;
  for (const auto& stage : state.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto& each = state.steps.at(step.id);
        planned = planned ||
                  (step.cost.leader_move && step.node == state.leader && !each.operation.empty() &&
                   each.attempt > 0 && each.status != StepStatus::kDone);
      }
    }
  }
  run.record(events::kLeaderMoved,
             {{"from", state.leader}, {"to", leader->name}, {"planned", planned}});
}

/// Only an operator brings it back, so the alert fires at once and has a name of its own.
void track_given_up(RunContext& run, const planner::NodeSnapshot& node) {
  const auto what = fmt::format("{}{}", kStaysDownAlert, node.name);
  if (node.answered || run.state().skipped_nodes.contains(node.name) ||
      is_replaced(run.state(), node)) {
    run.clear_alert("/" + what);
  } else if (!node.stays_down.empty() && !has_ended(run.state().status)) {
    run.alert_once("", what,
                   fmt::format("the server of {} stays down: {}", node.name, node.stays_down));
  }
}

/// A node that has been silent for minutes, such as one that crashed in resigning and that nothing
/// starts again.
void track_silence(RunContext& run, const planner::NodeSnapshot& node) {
  constexpr std::chrono::minutes kLongSilence{2};
  if (node.answered || run.state().skipped_nodes.contains(node.name) ||
      is_kept_stopped(run, node) || is_replaced(run.state(), node)) {
    run.live().silent_since.erase(node.name);
    run.clear_alert(fmt::format("/silent-{}", node.name));
    return;
  }
  const auto since = run.live().silent_since.try_emplace(node.name, run.monotonic()).first->second;
  if (run.monotonic() - since >= kLongSilence && !has_ended(run.state().status)) {
    run.alert_once("", fmt::format("silent-{}", node.name),
                   fmt::format("{} has not answered for {} minutes: {}{}{}; start it, or see what "
                               "keeps it",
                               node.name, kLongSilence.count(), node.problem,
                               node.agent_problem.empty() ? "" : "; ", node.agent_problem));
  }
}

}  // namespace

void track_node(RunContext& run, const planner::NodeSnapshot& node) {
  track_given_up(run, node);
  track_silence(run, node);
}

void track_cluster(RunContext& run, const planner::ClusterSnapshot& snapshot) {
  track_leader(run, snapshot);
  for (const auto& node : snapshot.nodes) {
    track_node(run, node);
  }
}

}  // namespace verger::controller::detail
