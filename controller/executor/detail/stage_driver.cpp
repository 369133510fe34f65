#include "controller/executor/detail/stage_driver.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/events.h"

namespace verger::controller::detail {

namespace {

net::awaitable<StepEnd> drive_one(std::shared_ptr<RunContext> run,
                                  std::shared_ptr<StepRunner> steps, const planner::Stage* stage,
                                  const planner::Step* step) {
  auto end = StepEnd::kLeft;
  {
    struct Driven {
      Run& run;
      const planner::Step& step;
      ~Driven() { run.driven.erase(step.id); }
    };
    const Driven driven{run->live(), *step};
    end = co_await steps->drive(*stage, *step);
  }
  if (run->live().driven.empty()) {
    run->live().wake();
  }
  co_return end;
}

/// Undoes the stage as soon as it is to be, though a step still waits for a node that does not
/// answer: only that node's own undo waits for it. kLeft: it has.
net::awaitable<StepEnd> undo_beside_pending(std::shared_ptr<RunContext> run,
                                            std::shared_ptr<StageUndo> undo,
                                            const planner::Stage* stage) {
  while (!run->live().driven.empty()) {
    if (run->must_undo(*stage)) {
      co_await undo->undo(*stage, "failure");
      co_return StepEnd::kLeft;
    }
    co_await run->sleep_for(run->poll());
  }
  co_return StepEnd::kDone;
}

}  // namespace

bool StageDriver::any_step_is(const planner::Stage& stage, StepStatus status) const {
  return std::ranges::any_of(stage.groups, [&](const planner::Group& group) {
    return std::ranges::any_of(
        group, [&](const planner::Step& step) { return run_->state_of(step).status == status; });
  });
}

net::awaitable<bool> StageDriver::drive_group(const planner::Stage& stage,
                                              const planner::Group& group,
                                              std::optional<StageFailure>& failure) {
  run_->live().group_failed = false;
  std::vector<net::awaitable<StepEnd>> work;
  std::vector<const planner::Step*> failed;
  for (const auto& step : group) {
    const auto step_status = run_->state_of(step).status;
    if (step_status == StepStatus::kFailed) {
      failed.push_back(&step);
      run_->live().group_failed = true;
    } else if (!is_over(step_status)) {
      run_->live().driven[step.id] = step.node;
      work.push_back(drive_one(run_, steps_, &stage, &step));
    }
  }
  if (stage.on_failure == planner::FailureRule::kUndoAll) {
    work.push_back(undo_beside_pending(run_, undo_, &stage));
  }
  const auto ends = co_await gather(std::move(work));
  run_->check();
  const bool undoing = run_->state().stages.at(stage.id).status == StageStatus::kUndoing;
  if (!undoing && std::ranges::find(ends, StepEnd::kDeferred) != ends.end()) {
    run_->record(events::kStageDeferred,
                 {{"stage", stage.id}, {"reason", "its node leads the cluster"}});
    co_return false;
  }
  for (const auto& step : group) {
    if (run_->state_of(step).status == StepStatus::kFailed &&
        std::ranges::find(failed, &step) == failed.end()) {
      failed.push_back(&step);
    }
  }
  if (!failed.empty()) {
    failure = co_await fail(
        stage, fmt::format("{}: {}", failed.front()->id, run_->state_of(*failed.front()).reason));
    co_return false;
  }
  if (run_->cancelling()) {
    co_return false;
  }
  if (left_out_of(run_->state(), stage) != nullptr &&
      std::ranges::find(ends, StepEnd::kLeft) != ends.end()) {
    failure = co_await fail(stage, "");
    co_return false;
  }
  if (std::ranges::find(ends, StepEnd::kClosed) != ends.end()) {
    co_await roll_back(stage, "hours");
    co_return false;
  }
  if (std::ranges::find(ends, StepEnd::kLeft) != ends.end()) {
    if (run_->pausing()) {
      co_await roll_back(stage, "pause");
    }
    co_return false;
  }
  co_return true;
}

net::awaitable<std::optional<StageFailure>> StageDriver::drive(const planner::Stage& stage) {
  const auto& state = run_->state().stages.at(stage.id);
  if (state.status == StageStatus::kUndoing) {
    run_->begin_deadline(stage, stage.deadline_ms);
    if (!state.rolling_back) {
      co_return co_await fail(stage, "");
    }
    co_await roll_back(stage, "pause");
    co_return std::nullopt;
  }
  if (state.status == StageStatus::kPending) {
    co_await run_->pause_point();
    if (run_->cancelling()) {
      co_return std::nullopt;
    }
    run_->record(events::kStageStarted, {{"stage", stage.id}});
  }
  run_->begin_deadline(stage, stage.deadline_ms);
  std::optional<StageFailure> failure;
  for (const auto& group : stage.groups) {
    if (!co_await drive_group(stage, group, failure)) {
      co_return failure;
    }
  }
  const bool half_done = stage.on_failure == planner::FailureRule::kUndoAll &&
                         any_step_is(stage, StepStatus::kSkipped);
  if (half_done) {
    // Half of such a stage must not stay, such as a lowered priority without the resignation.
    co_await undo_->undo(stage, "failure");
  }
  run_->record(events::kStageEnded,
               {{"stage", stage.id}, {"state", half_done ? "undone" : "done"}});
  co_return std::nullopt;
}

std::string StageDriver::why_undone(const planner::Stage& stage) const {
  if (const auto* node = left_out_of(run_->state(), stage)) {
    return fmt::format("{} is left out, and stage {} is done on all of its nodes or on none", *node,
                       stage.id);
  }
  std::string reason;
  for (const auto& group : stage.groups) {
    for (const auto& step : group) {
      const auto& state = run_->state().steps.at(step.id);
      if (state.status == StepStatus::kFailed ||
          (state.status == StepStatus::kUndone && !state.reason.empty() && reason.empty())) {
        reason = fmt::format("{}: {}", step.id, state.reason);
      }
    }
  }
  return reason.empty() ? fmt::format("a step of {} failed; its events say why", stage.id) : reason;
}

net::awaitable<std::optional<StageFailure>> StageDriver::fail(const planner::Stage& stage,
                                                              std::string reason) {
  switch (stage.on_failure) {
    case planner::FailureRule::kStop:
      co_return StageFailure{.state = "failed", .reason = std::move(reason)};
    case planner::FailureRule::kSkipNode:
      skip_failed_nodes(stage, reason);
      co_return std::nullopt;
    case planner::FailureRule::kUndoAll:
      co_await undo_->undo(stage, "failure");
      // A cancelled run is ended by its own path.
      if (run_->cancelling()) {
        run_->record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
        co_return std::nullopt;
      }
      co_return StageFailure{.state = "undone",
                             .reason = reason.empty() ? why_undone(stage) : std::move(reason)};
  }
  co_return std::nullopt;
}

void StageDriver::skip_failed_nodes(const planner::Stage& stage, const std::string& reason) {
  std::set<std::string> nodes;
  for (const auto& group : stage.groups) {
    for (const auto& step : group) {
      if (run_->state_of(step).status == StepStatus::kFailed && !step.node.empty()) {
        nodes.insert(step.node);
      }
    }
  }
  for (const auto& node : nodes) {
    run_->record(events::kNodeSkipped, {{"node", node}, {"by", "plan"}, {"reason", reason}});
  }
  for (const auto& group : stage.groups) {
    for (const auto& step : group) {
      if (!is_over(run_->state_of(step).status)) {
        run_->record(events::kStepSkipped, {{"step", step.id}, {"reason", reason}});
      }
    }
  }
  run_->record(events::kStageEnded, {{"stage", stage.id}, {"state", "failed"}});
}

net::awaitable<void> StageDriver::roll_back(const planner::Stage& stage, std::string_view why) {
  co_await undo_->undo(stage, why);
  run_->record(events::kStageRolledBack, {{"stage", stage.id}, {"reason", why}});
}

net::awaitable<bool> StageDriver::cancel(const planner::Stage& stage) {
  bool all_known = true;
  run_->begin_deadline(stage, stage.deadline_ms);
  std::vector<net::awaitable<StepEnd>> work;
  for (const auto& group : stage.groups) {
    for (const auto& step : group) {
      if (!is_under_way(run_->state_of(step).status)) {
        continue;
      }
      if (run_->parts().kinds.find(step.kind) == nullptr) {
        all_known = false;
        run_->record(events::kStepFailed,
                     {{"step", step.id},
                      {"code", "unknown-kind"},
                      {"reason", fmt::format("it was under way, and this controller does not know "
                                             "the kind \"{}\"; look at the node",
                                             step.kind)}});
      } else if (stage.on_failure != planner::FailureRule::kUndoAll) {
        run_->live().driven[step.id] = step.node;
        work.push_back(drive_one(run_, steps_, &stage, &step));
      }
    }
  }
  co_await gather(std::move(work));
  run_->check();
  if (stage.on_failure == planner::FailureRule::kUndoAll) {
    co_await undo_->undo(stage, "failure");
  }
  run_->record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
  co_return all_known;
}

}  // namespace verger::controller::detail
