#include "controller/executor/detail/run_driver.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/events.h"

// Forwards: stage after stage, group after group, and what a failed step means for them. How things
// are undone is in run_undo.cpp, one step in step_*.cpp.
namespace verger::controller::detail {

namespace {

bool has_ended_step(StepStatus status) {
  return status == StepStatus::kDone || status == StepStatus::kFailed ||
         status == StepStatus::kSkipped || status == StepStatus::kUndone;
}

}  // namespace

const planner::Step* RunDriver::unknown_step() const {
  for (const auto& stage : run_->state.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (core_->parts.kinds.find(step.kind) == nullptr &&
            !has_ended_step(run_->state.steps.at(step.id).status)) {
          return &step;
        }
      }
    }
  }
  return nullptr;
}

net::awaitable<void> RunDriver::drive() {
  if (const auto* step = unknown_step(); step != nullptr && !has_ended(run_->state.status)) {
    // Of a newer controller. What is under way is brought to a safe end, nothing else is begun.
    if (!cancelling()) {
      record(events::kRunCancelling,
             {{"by", "controller"},
              {"reason", fmt::format("step {}: this controller does not know the kind \"{}\"; make "
                                     "a new plan, or use the controller that made this one",
                                     step->id, step->kind)}});
    }
  }
  for (;;) {
    check();
    auto& state = run_->state;
    if (has_ended(state.status)) {
      co_return;
    }
    if (cancelling()) {
      co_await finish_cancelled();
      co_return;
    }
    if (state.order.empty()) {
      end_done();
      co_return;
    }
    const auto id = state.order.front();
    const auto& stages = state.plan->stages;
    co_await drive_stage(*std::ranges::find(stages, id, &planner::Stage::id));
  }
}

void RunDriver::end_done() {
  auto status = RunStatus::kDone;
  std::vector<std::string> reasons;
  if (const auto& skipped = run_->state.skipped_nodes; !skipped.empty()) {
    reasons.push_back(fmt::format("without {}", fmt::join(skipped, ", ")));
  }
  std::vector<std::pair<std::string, std::string>> differing;  // steps, and what each saw
  for (const auto& [id, step] : run_->state.steps) {
    const auto result = parsed(step.result);
    const auto found = result.find(kDifferences);
    if (step.status != StepStatus::kDone || found == result.end() || !found->is_array() ||
        found->empty()) {
      continue;
    }
    differing.emplace_back(
        id, fmt::format("{}", fmt::join(found->get<std::vector<std::string>>(), "; ")));
  }
  for (auto& [id, text] : differing) {
    status = RunStatus::kDoneWithDifferences;
    alert_once(id, "differences", text);
    reasons.push_back(std::move(text));
  }
  record(events::kRunEnded,
         {{"state", to_string(status)}, {"reason", fmt::format("{}", fmt::join(reasons, "; "))}});
}

/// True when all of the group's steps have ended well; false: look at the run's state again.
net::awaitable<bool> RunDriver::drive_group(const planner::Stage& stage,
                                            const planner::Group& group) {
  run_->group_failed = false;
  std::vector<net::awaitable<StepEnd>> work;
  std::vector<const planner::Step*> failed;
  for (const auto& step : group) {
    const auto step_status = state_of(step).status;
    if (step_status == StepStatus::kFailed) {
      failed.push_back(&step);
      run_->group_failed = true;
    } else if (!has_ended_step(step_status)) {
      work.push_back(drive_step(shared_from_this(), &stage, &step));
    }
  }
  const auto ends = co_await gather(std::move(work));
  check();
  if (std::ranges::find(ends, StepEnd::kDeferred) != ends.end()) {
    record(events::kStageDeferred, {{"stage", stage.id}, {"reason", "its node leads the cluster"}});
    co_return false;
  }
  for (const auto& step : group) {
    if (state_of(step).status == StepStatus::kFailed &&
        std::ranges::find(failed, &step) == failed.end()) {
      failed.push_back(&step);
    }
  }
  if (!failed.empty()) {
    co_await fail_stage(
        stage, fmt::format("{}: {}", failed.front()->id, state_of(*failed.front()).reason));
    co_return false;
  }
  if (cancelling()) {
    co_return false;
  }
  if (std::ranges::find(ends, StepEnd::kClosed) != ends.end()) {
    co_await roll_back(stage, "hours");
    co_return false;
  }
  if (std::ranges::find(ends, StepEnd::kLeft) != ends.end()) {
    if (pausing()) {
      co_await roll_back(stage, "pause");
    }
    co_return false;
  }
  co_return true;
}

/// True when the run may continue with the next stage; false: look at the run's state again.
net::awaitable<bool> RunDriver::drive_stage(const planner::Stage& stage) {
  auto status = run_->state.stages.at(stage.id).status;
  if (status == StageStatus::kUndoing) {
    if (run_->state.stages.at(stage.id).rolling_back) {
      co_await roll_back(stage, "pause");
    } else {
      co_await fail_stage(stage, "");
    }
    co_return false;
  }
  if (status == StageStatus::kPending) {
    co_await pause_point();
    if (cancelling()) {
      co_return false;
    }
    record(events::kStageStarted, {{"stage", stage.id}});
  }
  begin_deadline(stage, stage.deadline_ms);
  for (const auto& group : stage.groups) {
    if (!co_await drive_group(stage, group)) {
      co_return false;
    }
  }
  const bool skipped = std::ranges::any_of(stage.groups, [this](const auto& group) {
    return std::ranges::any_of(
        group, [this](const auto& step) { return state_of(step).status == StepStatus::kSkipped; });
  });
  if (skipped && stage.on_failure == planner::FailureRule::kUndoAll) {
    // Half of such a stage must not stay, such as a lowered priority without the resignation.
    co_await undo_stage(stage, "failure");
    record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
    co_return true;
  }
  record(events::kStageEnded, {{"stage", stage.id}, {"state", "done"}});
  co_return true;
}

std::string RunDriver::why_undone(const planner::Stage& stage) const {
  std::string reason;
  for (const auto& group : stage.groups) {
    for (const auto& step : group) {
      const auto& state = run_->state.steps.at(step.id);
      if (state.status == StepStatus::kFailed ||
          (state.status == StepStatus::kUndone && !state.reason.empty() && reason.empty())) {
        reason = fmt::format("{}: {}", step.id, state.reason);
      }
    }
  }
  return reason.empty() ? fmt::format("a step of {} failed; its events say why", stage.id) : reason;
}

net::awaitable<void> RunDriver::fail_stage(const planner::Stage& stage, std::string reason) {
  switch (stage.on_failure) {
    case planner::FailureRule::kStop:
      if (!co_await close_run()) {
        co_return;
      }
      record_all({{std::string(events::kStageEnded), {{"stage", stage.id}, {"state", "failed"}}},
                  {std::string(events::kRunEnded), {{"state", "failed"}, {"reason", reason}}}});
      co_return;
    case planner::FailureRule::kSkipNode: {
      std::set<std::string> nodes;
      for (const auto& group : stage.groups) {
        for (const auto& step : group) {
          if (state_of(step).status == StepStatus::kFailed && !step.node.empty()) {
            nodes.insert(step.node);
          }
        }
      }
      for (const auto& node : nodes) {
        record(events::kNodeSkipped, {{"node", node}, {"by", "plan"}, {"reason", reason}});
      }
      for (const auto& group : stage.groups) {
        for (const auto& step : group) {
          if (!has_ended_step(state_of(step).status)) {
            record(events::kStepSkipped, {{"step", step.id}, {"reason", reason}});
          }
        }
      }
      record(events::kStageEnded, {{"stage", stage.id}, {"state", "failed"}});
      co_return;
    }
    case planner::FailureRule::kUndoAll:
      co_await undo_stage(stage, "failure");
      if (reason.empty()) {
        reason = why_undone(stage);
      }
      // A cancelled run is ended by its own path.
      if (cancelling()) {
        record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
        co_return;
      }
      if (!co_await close_run()) {
        co_return;
      }
      record_all({{std::string(events::kStageEnded), {{"stage", stage.id}, {"state", "undone"}}},
                  {std::string(events::kRunEnded), {{"state", "failed"}, {"reason", reason}}}});
      co_return;
  }
}

bool RunDriver::closes_run(const planner::Stage& stage) const {
  return std::ranges::all_of(stage.groups, [this](const planner::Group& group) {
    return std::ranges::all_of(group, [this](const planner::Step& step) {
      const auto* kind = core_->parts.kinds.find(step.kind);
      return kind != nullptr && kind->closes_run();
    });
  });
}

net::awaitable<bool> RunDriver::close_run() {
  if (closing_) {
    co_return true;  // it is one of these stages that fails
  }
  closing_ = true;
  const auto plan = run_->state.plan;
  for (const auto& stage : plan->stages) {
    const auto status = run_->state.stages.at(stage.id).status;
    const bool open = status == StageStatus::kPending || status == StageStatus::kRunning ||
                      status == StageStatus::kUndoing;
    if (open && closes_run(stage)) {
      co_await drive_stage(stage);
    }
  }
  closing_ = false;
  co_return !has_ended(run_->state.status);
}

bool RunDriver::has_begun(const planner::Stage& stage) const {
  return std::ranges::any_of(stage.groups, [this](const planner::Group& group) {
    return std::ranges::any_of(group, [this](const planner::Step& step) {
      const auto& state = run_->state.steps.at(step.id);
      if (state.attempt == state.attempts_before_rollback) {
        return false;
      }
      // Of a failed attempt there may be something to undo all the same. Where
      // nothing can be, rolling back leaves the step as it is: it would be done again and again.
      const bool came_to_nothing =
          state.status == StepStatus::kPending || state.status == StepStatus::kWaiting;
      const auto* kind = core_->parts.kinds.find(step.kind);
      return !came_to_nothing || (kind != nullptr && kind->can_undo());
    });
  });
}

}  // namespace verger::controller::detail
