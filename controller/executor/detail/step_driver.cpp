#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/run_driver.h"
#include "controller/executor/events.h"

// One step from state to state, and what interferes with it: pauses, deadlines, interruptions. Its
// beginning is in step_begin.cpp, its observation in step_watch.cpp.
namespace verger::controller::detail {

using nlohmann::json;

namespace {

std::string_view to_string(Interrupt why) {
  switch (why) {
    case Interrupt::kPause:
      return "pause";
    case Interrupt::kCancel:
      return "cancel";
    case Interrupt::kSkip:
      return "skip";
    case Interrupt::kHours:
      return "hours";
  }
  return "";
}

}  // namespace

net::awaitable<StepEnd> RunDriver::drive_step(std::shared_ptr<RunDriver> self,
                                              const planner::Stage* stage,
                                              const planner::Step* step) {
  const auto end = co_await self->step_to_end(*stage, *step);
  if (end == StepEnd::kFailed) {
    self->run_->group_failed = true;
    self->run_->wake();
  }
  co_return end;
}

net::awaitable<StepEnd> RunDriver::step_to_end(const planner::Stage& stage,
                                               const planner::Step& step) {
  if (broken().repeat_after_crash && (state_of(step).status == StepStatus::kActing ||
                                      state_of(step).status == StepStatus::kUnknown)) {
    co_await act(stage, step, context_of(step, co_await watch(step)), false);
  }
  for (;;) {
    check();
    const auto status = state_of(step).status;
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
        const auto end = co_await watch_step(stage, step);
        if (end) {
          co_return *end;
        }
        break;
      }
      case StepStatus::kPending:
      case StepStatus::kWaiting: {
        if (cancelling() || run_->group_failed) {
          co_return StepEnd::kLeft;
        }
        if (is_skipped(step)) {
          record(events::kStepSkipped, {{"step", step.id}, {"reason", "its node is skipped"}});
          co_return StepEnd::kSkipped;
        }
        if (pausing()) {
          if (stage.on_failure == planner::FailureRule::kUndoAll && has_begun(stage)) {
            co_return StepEnd::kLeft;
          }
          co_await pause_point();
          break;
        }
        const auto end = co_await start_step(stage, step);
        if (end) {
          co_return *end;
        }
        break;
      }
    }
  }
}

net::awaitable<void> RunDriver::pause_point() {
  const auto began = monotonic();
  bool paused = false;
  while (pausing()) {
    paused = true;
    if (run_->state.status == RunStatus::kPausing) {
      const bool acting = std::ranges::any_of(run_->state.steps, [](const auto& each) {
        return each.second.status == StepStatus::kActing ||
               each.second.status == StepStatus::kUnknown;
      });
      if (!acting) {
        record(events::kRunPaused, json::object());
      }
    }
    co_await sleep_for(poll());
  }
  if (paused) {
    run_->stop_deadlines(began, monotonic());
    run_->closed_since.clear();
  }
}

bool RunDriver::past_deadline(const planner::Stage& stage, const planner::Step& step,
                              std::string_view doing) {
  const auto found = run_->deadlines.find(stage.id);
  if (found == run_->deadlines.end() || monotonic() < found->second) {
    return false;
  }
  auto reason = fmt::format("{} is {} past the deadline of its stage ({} ms)", step.id, doing,
                            stage.deadline_ms);
  if (stage.on_failure == planner::FailureRule::kStop) {
    // Stopping the run would undo nothing and help no node: it waits for a person, with an alert.
    alert_once(step.id, "deadline",
               fmt::format("{}; `verger run skip` leaves the node out", reason));
    return false;
  }
  alert_once(step.id, "deadline", std::move(reason));
  return true;
}

net::awaitable<void> RunDriver::interrupt_if_wanted(const planner::Step& step,
                                                    StepContext context) {
  std::optional<Interrupt> why;
  if (cancelling()) {
    why = Interrupt::kCancel;
  } else if (is_skipped(step)) {
    why = Interrupt::kSkip;
  } else if (run_->state.status == RunStatus::kPausing) {
    why = Interrupt::kPause;
  } else if (context.snapshot.hours && !context.snapshot.hours->open &&
             std::ranges::find(step.gates, "hours", &planner::Gate::name) != step.gates.end()) {
    why = Interrupt::kHours;
  }
  if (!why) {
    co_return;
  }
  const bool by_pause = *why == Interrupt::kPause;
  if (by_pause && run_->state.pause_mode == PauseMode::kDrain) {
    co_return;
  }
  // "Now" stops what can be stopped at all, regardless of the policy on pauses.
  const bool now = by_pause && run_->state.pause_mode == PauseMode::kNow;
  if (!kind_of(step).can_interrupt(context, now ? Interrupt::kCancel : *why)) {
    co_return;
  }
  // Journaled before the request, so that a stop is never taken for another party's.
  const bool was_interrupted = state_of(step).interrupting;
  if (!was_interrupted) {
    record(events::kStepInterrupting, {{"step", step.id}, {"why", to_string(*why)}});
    context.state.interrupting = true;
  }
  context.interrupt = why;
  co_await kind_of(step).interrupt(std::move(context));
  check();
}

}  // namespace verger::controller::detail
