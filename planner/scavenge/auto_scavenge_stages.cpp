#include "planner/scavenge/auto_scavenge_stages.h"

#include <algorithm>

#include "planner/detail/stages.h"

namespace verger::planner::detail {
namespace {

Stage stage_of(const ScavengeOrder& order, Step step, std::string title) {
  Stage stage;
  stage.id = step.id;
  stage.title = std::move(title);
  stage.deadline_ms = order.policy.limits.move_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  stage.groups.push_back(alone(std::move(step)));
  return stage;
}

}  // namespace

bool may_scavenge_by_itself(AutoScavenge state) {
  return state == AutoScavenge::kWaiting || state == AutoScavenge::kInProgress ||
         state == AutoScavenge::kPausing;
}

std::optional<AutoScavengeStages> auto_scavenge_stages(const ScavengeOrder& order) {
  if (order.scavenge.auto_scavenge != AutoScavengeRule::kPause ||
      std::ranges::none_of(order.snapshot.nodes, [](const NodeSnapshot& node) {
        return may_scavenge_by_itself(node.auto_scavenge);
      })) {
    return std::nullopt;
  }
  Step pause;
  pause.id = "pause-auto-scavenge";
  pause.kind = "pause_auto_scavenge";
  pause.gates = {{"cluster-identity", 0}};
  pause.act = "pause the servers' own auto-scavenge";
  pause.observe = "no node shows it waiting or at work";
  pause.reason = "two schedulers of scavenges would resign leaders beside each other";
  pause.attempts = 5;
  pause.expected = {1'000, 60'000};
  Step resume = pause;
  resume.id = "resume-auto-scavenge";
  resume.kind = "resume_auto_scavenge";
  resume.act = "resume it, where this run paused it";
  resume.observe = "a node shows it waiting or at work";
  resume.reason = "the run leaves the cluster as it was, however it ends";
  AutoScavengeStages out{stage_of(order, std::move(pause), "pause auto-scavenge"),
                         stage_of(order, std::move(resume), "resume auto-scavenge")};
  out.resume.closing = true;
  // A cluster that cannot be reached must not keep the run from ending.
  out.resume.on_failure = FailureRule::kUndoAll;
  return out;
}

}  // namespace verger::planner::detail
