#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/detail/run_driver.h"
#include "controller/executor/events.h"

// Backwards: undoing what a stage did, because it failed, is paused in the middle, or the run
// is cancelled.
namespace verger::controller::detail {

using nlohmann::json;

net::awaitable<void> RunDriver::roll_back(const planner::Stage& stage, std::string_view why) {
  co_await undo_stage(stage, why);
  record(events::kStageRolledBack, {{"stage", stage.id}, {"reason", why}});
}

net::awaitable<void> RunDriver::undo_stage(const planner::Stage& stage, std::string_view why) {
  if (run_->state.stages.at(stage.id).status != StageStatus::kUndoing) {
    record(events::kUndoStarted, {{"stage", stage.id}, {"why", why}});
  }
  std::map<std::string, Steps> by_node;
  for (auto group = stage.groups.rbegin(); group != stage.groups.rend(); ++group) {
    for (auto step = group->rbegin(); step != group->rend(); ++step) {
      const auto& state = state_of(*step);
      const auto* kind = core_->parts.kinds.find(step->kind);
      if (kind == nullptr && state.attempt > 0) {
        alert_once(step->id, "undo",
                   fmt::format("{} cannot be undone: this controller does not know the kind \"{}\"",
                               step->id, step->kind));
        continue;
      }
      // An act whose outcome is not known is undone like one that is.
      if (state.attempt > 0 && state.status != StepStatus::kUndone && kind->can_undo()) {
        by_node[step->node].push_back(&*step);
      }
    }
  }
  std::vector<net::awaitable<bool>> work;
  work.reserve(by_node.size());
  for (auto& [node, steps] : by_node) {
    work.push_back(undo_node(shared_from_this(), &stage, std::move(steps)));
  }
  co_await gather(std::move(work));
  check();
}

net::awaitable<bool> RunDriver::undo_node(std::shared_ptr<RunDriver> self,
                                          const planner::Stage* stage, Steps steps) {
  for (const auto* step : steps) {
    co_await self->undo_step(*stage, *step);
  }
  co_return true;
}

bool RunDriver::waits_for_hours(const planner::Stage& stage, const planner::Step& step) const {
  if (!run_->state.stages.at(stage.id).rolling_back || cancelling() || pausing() ||
      is_skipped(step)) {
    return false;
  }
  const auto now = hours(cluster());
  return now && !now->open;
}

net::awaitable<void> RunDriver::undo_step(const planner::Stage& stage, const planner::Step& step) {
  auto& kind = kind_of(step);
  std::string problem = "the node was not seen";
  bool asked = state_of(step).undoing;
  // Of this step alone: what another one needed is not taken from it.
  const auto deadline = monotonic() + std::chrono::milliseconds(stage.undo_deadline_ms);
  for (;;) {
    if (monotonic() >= deadline) {
      auto reason = fmt::format("{} could not be undone in time: {}", step.id, problem);
      alert_once(step.id, "undo", reason);
      // Giving up would only begin the stage anew, whose hours are still closed: it would be rolled
      // back again, deadline after deadline. The node may come back meanwhile.
      if (!waits_for_hours(stage, step)) {
        record(events::kUndoFailed, {{"step", step.id}, {"reason", std::move(reason)}});
        co_return;
      }
    }
    if (const auto found = run_->back_off.find(step.id);
        !asked && found != run_->back_off.end() && monotonic() < found->second.until) {
      co_await sleep_for(poll());
      continue;
    }
    auto context = context_of(step, co_await watch(step));
    if (asked) {
      const auto verdict = co_await kind.observe_undo(context);
      check();
      if (verdict.kind == Verdict::Kind::kDone) {
        record(events::kStepUndone, {{"step", step.id}});
        co_return;
      }
      const bool says_nothing = verdict.kind == Verdict::Kind::kRunning && verdict.reason.empty();
      problem = says_nothing ? "its undo is under way" : verdict.reason;
      asked = verdict.kind != Verdict::Kind::kNotHappened;
    }
    if (!asked) {
      context.state.undoing = true;
      ++context.state.undo_attempt;
      const auto permitted = co_await permit(context, core_->parts.options.permit_valid_for);
      if (permitted) {
        record(events::kUndoIntended, {{"step", step.id},
                                       {"operation", core_->parts.random.uuid().to_string()},
                                       {"attempt", context.state.undo_attempt}});
        context.state = state_of(step);
        const auto answer = co_await kind.undo(context);
        check();
        asked =
            answer.kind == ActAnswer::Kind::kAccepted || answer.kind == ActAnswer::Kind::kUnknown;
        problem = answer.reason;
        if (!asked) {
          back_off(step, problem);
        }
      } else {
        problem = permitted.error().message;
      }
    }
    co_await sleep_for(poll());
  }
}

net::awaitable<void> RunDriver::finish_cancelled() {
  // What acts was ordered to stop and has been seen to end before this is reached.
  bool gave_up = false;
  const auto& stages = run_->state.plan->stages;
  for (const auto& stage : stages) {
    const auto status = run_->state.stages.at(stage.id).status;
    if ((status != StageStatus::kRunning && status != StageStatus::kUndoing) || closes_run(stage)) {
      continue;
    }
    begin_deadline(stage, stage.deadline_ms);
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto step_status = state_of(step).status;
        if (step_status != StepStatus::kActing && step_status != StepStatus::kUnknown) {
          continue;
        }
        if (core_->parts.kinds.find(step.kind) == nullptr) {
          gave_up = true;
          record(events::kStepFailed,
                 {{"step", step.id},
                  {"code", "unknown-kind"},
                  {"reason", fmt::format("it was under way, and this controller does not know the "
                                         "kind \"{}\"; look at the node",
                                         step.kind)}});
        } else {
          co_await drive_step(shared_from_this(), &stage, &step);
        }
      }
    }
    if (stage.on_failure == planner::FailureRule::kUndoAll) {
      co_await undo_stage(stage, "failure");
    }
    record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
  }
  if (!co_await close_run()) {
    co_return;
  }
  const bool failed = unknown_step() != nullptr || gave_up;
  record(events::kRunEnded,
         {{"state", failed ? "failed" : "cancelled"}, {"reason", run_->state.reason}});
}

}  // namespace verger::controller::detail
