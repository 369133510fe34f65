#include "controller/executor/detail/step_watch.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/step_support.h"
#include "engine/base/mutation.h"

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

bool ends_intent(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::kDone:
    case Verdict::Kind::kNotHappened:
    case Verdict::Kind::kStopped:
    case Verdict::Kind::kFailed:
      return true;
    case Verdict::Kind::kRunning:
    case Verdict::Kind::kNotArrived:
    case Verdict::Kind::kUnknown:
      return false;
  }
  return false;
}

/// The registry says no, and the journal is well.
bool is_refused(const Error& error) {
  return error.code == Errc::kInvalidArgument || error.code == Errc::kNotFound ||
         error.code == Errc::kConflict;
}

/// What cannot be seen is looked for ever more seldom, down to every so many times the usual.
constexpr int kSlowestLook = 10;
/// A controller that is away for less was not missed.
constexpr std::chrono::minutes kUnwatchedAtLeast{1};

/// What takes a moment is seen to end a moment later; what lasts is looked at ever more rarely,
/// down to once in each `poll_interval`.
std::chrono::milliseconds until_next_look(std::chrono::milliseconds in_state,
                                          const ExecutorOptions& options) {
  const auto poll = options.poll_interval;
  // A clock that was set back says nothing of how long it lasts.
  return in_state < std::chrono::milliseconds(0)
             ? poll
             : std::clamp(in_state / 4, std::min(options.shortest_poll, poll), poll);
}

bool is_under_way_at_agent(const Result<api::OperationStatus>& status) {
  return status && (status->state == api::OperationState::kAccepted ||
                    status->state == api::OperationState::kActing);
}

RunEvent new_event(std::string_view type, json data) {
  return {std::string(type), std::move(data)};
}

}  // namespace

void StepWatch::tell_progress(const planner::Step& step, const Verdict& verdict,
                              std::vector<RunEvent> news) {
  const auto& state = run_->state_of(step);
  auto& reported = run_->live().progress_reported[step.id];
  const bool memo_is_new = !verdict.memo->empty();
  const bool due = run_->monotonic() - reported >= run_->parts().options.progress_interval;
  if (state.status == StepStatus::kUnknown || memo_is_new ||
      (due && *state.progress != *verdict.progress)) {
    reported = run_->monotonic();
    news.push_back(
        new_event(events::kStepProgress,
                  {{"step", step.id}, {"progress", *verdict.progress}, {"memo", *verdict.memo}}));
  }
  if (!news.empty()) {
    run_->record_all(std::move(news));
  }
}

void StepWatch::tell_unknown(const planner::Stage& stage, const planner::Step& step,
                             const Verdict& verdict, std::vector<RunEvent> news) {
  const auto& state = run_->state_of(step);
  if (state.status != StepStatus::kUnknown || state.reason != verdict.reason) {
    news.push_back(
        new_event(events::kStepUnknown, {{"step", step.id}, {"reason", verdict.reason}}));
  }
  if (is_given_up(stage, step)) {
    news.push_back(new_event(
        events::kStepSkipped,
        {{"step", step.id},
         {"reason",
          fmt::format("its node is skipped; the outcome is not known: {}", verdict.reason)}}));
  }
  if (!news.empty()) {
    run_->record_all(std::move(news));
  }
}

void StepWatch::note_unwatched(const planner::Step& step) {
  const auto& state = run_->state_of(step);
  if (!run_->live().watched.insert(step.id).second || state.status != StepStatus::kActing) {
    return;
  }
  // Another controller saw it last. Whether it worked since then is not known: its duration must
  // not count that time.
  const auto last = std::max(state.since.value_or(Ticks()), state.phase.at);
  const auto gone =
      (run_->parts().network.clock.now().value() - last.value()) / kTicksPerMillisecond;
  if (std::chrono::milliseconds(gone) >= kUnwatchedAtLeast) {
    run_->record(events::kStepProgress, {{"step", step.id},
                                         {"progress", *state.progress},
                                         {"memo", json::object()},
                                         {"unwatched_ms", gone}});
  }
}

net::awaitable<planner::ClusterSnapshot> StepWatch::look(const planner::Step& step, ForUndo undo) {
  constexpr std::chrono::milliseconds kLimit{5'000};
  if (undo) {
    co_return co_await run_->watch_alone(step, kLimit);
  }
  co_return co_await run_->watch(step);
}

net::awaitable<bool> StepWatch::ask_again(const planner::Stage& stage, const planner::Step& step,
                                          StepContext context, ForUndo undo) {
  if (undo || run_->cancelling() || run_->is_left_out(stage, step) ||
      (run_->pausing() && !run_->must_finish(stage))) {
    // Without the permit nothing arrives any longer; what arrived before it went is observed now.
    if (!co_await permits_.shut_out_late_request(context)) {
      co_await run_->sleep_for(run_->poll());
      co_return true;
    }
    const auto since =
        co_await run_->kind_of(step).observe(run_->context_of(step, co_await look(step, undo)));
    run_->check();
    if (since.kind != Verdict::Kind::kNotArrived) {
      co_return true;
    }
    if (co_await starts_.give_up_intent(step, context, "it was never requested", false)) {
      co_return false;
    }
    co_await run_->sleep_for(run_->poll());
    co_return true;
  }
  co_await starts_.act(stage, step, context, true);
  // Refused: the intent is given up, the step begins anew.
  co_return is_under_way(run_->state_of(step).status);
}

net::awaitable<std::optional<StepEnd>> StepWatch::watch(const planner::Stage& stage,
                                                        const planner::Step& step) {
  co_return co_await look_until_ended(stage, step, std::nullopt);
}

net::awaitable<std::optional<StepEnd>> StepWatch::watch_for_undo(const planner::Stage& stage,
                                                                 const planner::Step& step,
                                                                 Monotonic until) {
  co_return co_await look_until_ended(stage, step, until);
}

net::awaitable<std::optional<StepEnd>> StepWatch::look_until_ended(const planner::Stage& stage,
                                                                   const planner::Step& step,
                                                                   ForUndo undo) {
  auto& kind = run_->kind_of(step);
  note_unwatched(step);
  const bool may_leave = undo && kind.can_undo();
  for (int unknown = 0;;) {
    if (undo ? run_->monotonic() >= *undo : run_->must_undo(stage)) {
      co_return StepEnd::kLeft;
    }
    auto context = run_->context_of(step, co_await look(step, undo));
    auto verdict = co_await kind.observe(context);
    run_->check();
    // Seen to have ended, by others' work perhaps, while the request was never answered.
    if (ends_intent(verdict.kind) && !context.state.acted &&
        !co_await permits_.shut_out_late_request(context)) {
      verdict = steps::verdict(
          Verdict::Kind::kUnknown,
          fmt::format("the request may still arrive, and the agent of {} does not answer",
                      step.node));
    }
    auto news = run_->new_values(verdict.values);
    const auto record_end = [&](std::string_view type, json data) {
      news.push_back(new_event(type, std::move(data)));
      run_->record_all(std::move(news));
    };
    switch (verdict.kind) {
      case Verdict::Kind::kRunning:
        tell_progress(step, verdict, std::move(news));
        break;
      case Verdict::Kind::kDone:
        if (const auto begun = run_->begin_new_history(verdict.values); !begun) {
          throw JournalTrouble{begun.error()};
        }
        if (const auto changed = run_->change_members(verdict.values); !changed) {
          if (!is_refused(changed.error())) {
            throw JournalTrouble{changed.error()};
          }
          run_->record(
              events::kStepFailed,
              {{"step", step.id}, {"code", "not-registered"}, {"reason", changed.error().message}});
          co_return StepEnd::kFailed;
        }
        run_->failpoint(step, "before-outcome");
        record_end(events::kStepDone, {{"step", step.id}, {"result", *verdict.result}});
        run_->failpoint(step, "after-outcome");
        if (is_mutated("second-resign") && step.cost.leader_move &&
            context.snapshot.leader() != nullptr) {
          static_cast<void>(co_await context.peers->resign(context.snapshot.leader()->name));
        }
        co_return StepEnd::kDone;
      case Verdict::Kind::kNotArrived:
        if (!co_await ask_again(stage, step, context, undo)) {
          co_return std::nullopt;
        }
        break;
      case Verdict::Kind::kNotHappened:
        record_end(events::kStepRetry, {{"step", step.id},
                                        {"reason", verdict.reason},
                                        {"outcome", verdict.outcome},
                                        {"counts", true}});
        run_->back_off(step, verdict.reason);
        co_await run_->sleep_for(run_->poll());
        co_return std::nullopt;
      case Verdict::Kind::kStopped:
        record_end(events::kStepInterrupted,
                   {{"step", step.id}, {"reason", verdict.reason}, {"outcome", verdict.outcome}});
        if (!context.state.interrupting) {
          run_->back_off(step, verdict.reason);
        }
        co_return std::nullopt;
      case Verdict::Kind::kFailed:
        record_end(events::kStepFailed,
                   {{"step", step.id}, {"code", "failed"}, {"reason", verdict.reason}});
        co_return StepEnd::kFailed;
      case Verdict::Kind::kUnknown:
        tell_unknown(stage, step, verdict, std::move(news));
        if (is_given_up(stage, step)) {
          co_return StepEnd::kSkipped;
        }
        if (may_leave) {
          co_return StepEnd::kLeft;
        }
        break;
    }
    if (run_->past_deadline(stage, step, "under way")) {
      run_->record(events::kStepFailed,
                   {{"step", step.id},
                    {"code", "deadline"},
                    {"reason", fmt::format("deadline passed; {}", run_->state_of(step).reason)}});
      co_return StepEnd::kFailed;
    }
    unknown = verdict.kind == Verdict::Kind::kUnknown ? unknown + 1 : 0;
    if (verdict.kind != Verdict::Kind::kNotArrived) {
      const auto in_state = context.in_state;
      const bool at_agent =
          !undo && verdict.kind == Verdict::Kind::kRunning && kind.waits_for_agent(context);
      co_await interrupt_if_wanted(stage, step, run_->context_of(step, std::move(context.snapshot)),
                                   undo);
      if (unknown > 0) {
        co_await run_->sleep_for(run_->poll() * std::min(unknown, kSlowestLook));
      } else if (at_agent) {
        co_await wait_for_agent(step, context.peers, in_state);
      } else {
        co_await run_->sleep_for(until_next_look(in_state, run_->parts().options));
      }
    }
  }
}

net::awaitable<void> StepWatch::wait_for_agent(const planner::Step& step,
                                               std::shared_ptr<Peers> peers,
                                               std::chrono::milliseconds in_state) {
  const auto began = run_->monotonic();
  const auto operation = run_->state_of(step).operation;
  for (;;) {
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(run_->monotonic() - began);
    const auto left = run_->poll() - waited;
    const auto pause = until_next_look(in_state + waited, run_->parts().options);
    const bool slept = co_await run_->sleep_for(std::min(pause, left));
    if (!slept || pause >= left ||
        !is_under_way_at_agent(co_await peers->operation(step.node, operation))) {
      co_return;
    }
    run_->check();
  }
}

net::awaitable<void> StepWatch::interrupt_if_wanted(const planner::Stage& stage,
                                                    const planner::Step& step, StepContext context,
                                                    ForUndo undo) {
  std::optional<Interrupt> why;
  if (undo || run_->cancelling()) {
    why = Interrupt::kCancel;
  } else if (run_->must_finish(stage)) {
    co_return;
  } else if (run_->is_skipped(step)) {
    why = Interrupt::kSkip;
  } else if (run_->state().status == RunStatus::kPausing) {
    why = Interrupt::kPause;
  } else if (context.snapshot.hours && !context.snapshot.hours->open &&
             std::ranges::find(step.gates, planner::kMaintenanceWindow, &planner::Gate::name) !=
                 step.gates.end()) {
    why = Interrupt::kHours;
  }
  if (!why) {
    co_return;
  }
  const bool by_pause = *why == Interrupt::kPause;
  if (by_pause && run_->state().pause_mode == PauseMode::kDrain) {
    co_return;
  }
  // "Now" stops what can be stopped at all, regardless of the policy on pauses.
  const bool now = by_pause && run_->state().pause_mode == PauseMode::kNow;
  if (!run_->kind_of(step).can_interrupt(context, now ? Interrupt::kCancel : *why)) {
    co_return;
  }
  // Journaled before the request, so that a stop is never taken for another party's.
  const bool was_interrupted = run_->state_of(step).interrupting;
  if (!was_interrupted) {
    run_->record(events::kStepInterrupting, {{"step", step.id}, {"why", to_string(*why)}});
    context.state.interrupting = true;
  }
  context.interrupt = why;
  co_await run_->kind_of(step).interrupt(std::move(context));
  run_->check();
}

}  // namespace verger::controller::detail
