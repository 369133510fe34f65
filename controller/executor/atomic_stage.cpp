#include "controller/executor/atomic_stage.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/clock.h"

namespace verger::controller {
namespace {

bool may_have_acted(const StepState& state, const planner::Step& step) {
  if (state.attempt == state.attempts_before_rollback) {
    return false;
  }
  // Of an attempt that failed there may be something to undo all the same.
  const bool waits = state.status == StepStatus::kPending || state.status == StepStatus::kWaiting;
  return !waits || !step.undo.empty();
}

/// What is left of the stage at worst; what is being undone has a time of its own.
std::int64_t left_ms(const RunState& run, const planner::Stage& stage) {
  if (run.stages.at(stage.id).status == StageStatus::kUndoing) {
    return stage.undo_deadline_ms;
  }
  std::int64_t left = 0;
  for (const auto& group : stage.groups) {
    std::int64_t longest = 0;
    for (const auto& step : group) {
      const auto status = run.steps.at(step.id).status;
      if (status != StepStatus::kDone && status != StepStatus::kSkipped) {
        longest = std::max(longest, step.expected.high_ms);
      }
    }
    left += longest;
  }
  return left;
}

}  // namespace

bool must_finish(const RunState& run, const planner::Stage& stage) {
  if (!stage.atomic) {
    return false;
  }
  const auto status = run.stages.at(stage.id).status;
  if (status == StageStatus::kUndoing) {
    return true;
  }
  return status == StageStatus::kRunning &&
         std::ranges::any_of(stage.groups, [&run](const planner::Group& group) {
           return std::ranges::any_of(group, [&run](const planner::Step& step) {
             return may_have_acted(run.steps.at(step.id), step);
           });
         });
}

const std::string* left_out_of(const RunState& run, const planner::Stage& stage) {
  if (!stage.atomic) {
    return nullptr;
  }
  for (const auto& group : stage.groups) {
    for (const auto& step : group) {
      if (!step.node.empty() && run.skipped_nodes.contains(step.node)) {
        return &step.node;
      }
    }
  }
  return nullptr;
}

std::string pause_notice(const RunState& run, Ticks now) {
  if (run.status != RunStatus::kPausing) {
    return {};
  }
  const auto& stages = run.plan->stages;
  const auto found = std::ranges::find_if(
      stages, [&run](const planner::Stage& stage) { return must_finish(run, stage); });
  if (found == stages.end()) {
    return {};
  }
  return fmt::format(
      "stage {} is under way ({}): the pause takes effect when it is done or undone, as expected "
      "at {} at the latest; `verger run cancel` undoes it at once",
      found->id, found->title,
      format_ticks(Ticks(now.value() + left_ms(run, *found) * kTicksPerMillisecond)));
}

}  // namespace verger::controller
