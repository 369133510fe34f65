#include "controller/executor/detail/step_machine.h"

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "engine/base/mutation.h"

namespace verger::controller::detail {

net::awaitable<StepEnd> StepMachine::drive(const planner::Stage& stage, const planner::Step& step) {
  const auto end = co_await to_end(stage, step);
  if (end == StepEnd::kFailed) {
    run_->live().group_failed = true;
    run_->live().wake();
  }
  co_return end;
}

net::awaitable<void> StepMachine::settle(const planner::Stage& stage, const planner::Step& step,
                                         std::chrono::milliseconds limit) {
  const auto until = run_->monotonic() + limit;
  while (is_under_way(run_->state_of(step).status)) {
    if (co_await watches_.watch_for_undo(stage, step, until) == StepEnd::kLeft) {
      co_return;
    }
  }
}

net::awaitable<StepEnd> StepMachine::to_end(const planner::Stage& stage,
                                            const planner::Step& step) {
  if (is_mutated("repeat-after-crash") && is_under_way(run_->state_of(step).status)) {
    co_await starts_.act(stage, step, run_->context_of(step, co_await run_->watch(step)), false);
  }
  for (;;) {
    run_->check();
    const auto status = run_->state_of(step).status;
    switch (status) {
      case StepStatus::kDone:
      case StepStatus::kUndone:
        co_return StepEnd::kDone;
      case StepStatus::kFailed:
        co_return StepEnd::kFailed;
      case StepStatus::kSkipped:
        co_return StepEnd::kSkipped;
      case StepStatus::kActing:
      case StepStatus::kUnknown: {
        const auto end = co_await watches_.watch(stage, step);
        if (end) {
          co_return *end;
        }
        break;
      }
      case StepStatus::kPending:
      case StepStatus::kWaiting: {
        if (run_->cancelling() || run_->live().group_failed) {
          co_return StepEnd::kLeft;
        }
        if (left_out_of(run_->state(), stage) != nullptr) {
          co_return StepEnd::kLeft;  // all of the stage is undone
        }
        if (run_->is_skipped(step)) {
          run_->record(events::kStepSkipped,
                       {{"step", step.id}, {"reason", "its node is skipped"}});
          co_return StepEnd::kSkipped;
        }
        if (run_->pausing() && !run_->must_finish(stage)) {
          if (stage.on_failure == planner::FailureRule::kUndoAll && !stage.atomic &&
              run_->has_begun(stage)) {
            co_return StepEnd::kLeft;
          }
          co_await run_->pause_point();
          break;
        }
        const auto end = co_await starts_.start(stage, step);
        if (end) {
          co_return *end;
        }
        break;
      }
    }
  }
}

}  // namespace verger::controller::detail
