#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/run_driver.h"
#include "controller/executor/events.h"
#include "controller/executor/step_support.h"

// A step that may have acted: its node is looked at until it can tell how that ended.
namespace verger::controller::detail {

using nlohmann::json;

namespace {

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

/// What cannot be seen is looked for ever more seldom, down to every so many times the usual.
constexpr int kSlowestLook = 10;
/// A controller that is away for less was not missed.
constexpr std::chrono::minutes kUnwatchedAtLeast{1};

/// What takes a moment is seen to end a moment later; what lasts is looked at ever more rarely,
/// down to once in each `poll`.
std::chrono::milliseconds until_next_look(std::chrono::milliseconds in_state,
                                          std::chrono::milliseconds poll) {
  constexpr std::chrono::milliseconds kShortest{100};
  // A clock that was set back says nothing of how long it lasts.
  return in_state < std::chrono::milliseconds(0)
             ? poll
             : std::clamp(in_state / 4, std::min(kShortest, poll), poll);
}

RunEvent new_event(std::string_view type, json data) {
  return {std::string(type), std::move(data)};
}

}  // namespace

void RunDriver::tell_progress(const planner::Step& step, const Verdict& verdict,
                              std::vector<RunEvent> news) {
  const auto& state = state_of(step);
  auto& reported = run_->progress_reported[step.id];
  const bool memo_is_new = !parsed(verdict.memo).empty();
  const bool due = monotonic() - reported >= core_->parts.options.progress_interval;
  if (state.status == StepStatus::kUnknown || memo_is_new ||
      (due && parsed(state.progress) != parsed(verdict.progress))) {
    reported = monotonic();
    news.push_back(new_event(events::kStepProgress, {{"step", step.id},
                                                     {"progress", parsed(verdict.progress)},
                                                     {"memo", parsed(verdict.memo)}}));
  }
  if (!news.empty()) {
    record_all(std::move(news));
  }
}

void RunDriver::tell_unknown(const planner::Step& step, const Verdict& verdict,
                             std::vector<RunEvent> news) {
  const auto& state = state_of(step);
  if (state.status != StepStatus::kUnknown || state.reason != verdict.reason) {
    news.push_back(
        new_event(events::kStepUnknown, {{"step", step.id}, {"reason", verdict.reason}}));
  }
  if (is_skipped(step)) {
    news.push_back(new_event(
        events::kStepSkipped,
        {{"step", step.id},
         {"reason",
          fmt::format("its node is skipped; the outcome is not known: {}", verdict.reason)}}));
  }
  if (!news.empty()) {
    record_all(std::move(news));
  }
}

void RunDriver::note_unwatched(const planner::Step& step) {
  const auto& state = state_of(step);
  if (!run_->watched.insert(step.id).second || state.status != StepStatus::kActing) {
    return;
  }
  // Another controller saw it last. Whether it worked since then is not known: its duration must
  // not count that time.
  const auto last = std::max(state.since.value_or(Ticks()), state.phase.at);
  const auto gone =
      (core_->parts.network.clock.now().value() - last.value()) / kTicksPerMillisecond;
  if (std::chrono::milliseconds(gone) >= kUnwatchedAtLeast) {
    record(events::kStepProgress, {{"step", step.id},
                                   {"progress", parsed(state.progress)},
                                   {"memo", json::object()},
                                   {"unwatched_ms", gone}});
  }
}

net::awaitable<bool> RunDriver::ask_again(const planner::Stage& stage, const planner::Step& step,
                                          StepContext context) {
  if (cancelling() || is_skipped(step) || pausing()) {
    // Without the permit nothing arrives any longer; what arrived before it went is observed now.
    if (!co_await shut_out_late_request(context)) {
      co_await sleep_for(poll());
      co_return true;
    }
    const auto since = co_await kind_of(step).observe(context_of(step, co_await watch(step)));
    check();
    if (since.kind != Verdict::Kind::kNotArrived) {
      co_return true;
    }
    if (co_await give_up_intent(step, context, "it was never requested", false)) {
      co_return false;
    }
    co_await sleep_for(poll());
    co_return true;
  }
  co_await act(stage, step, context, true);
  // Refused: the intent is given up, the step begins anew.
  const auto status = state_of(step).status;
  co_return status == StepStatus::kActing || status == StepStatus::kUnknown;
}

net::awaitable<std::optional<StepEnd>> RunDriver::watch_step(const planner::Stage& stage,
                                                             const planner::Step& step) {
  auto& kind = kind_of(step);
  note_unwatched(step);
  for (int unknown = 0;;) {
    auto context = context_of(step, co_await watch(step));
    auto verdict = co_await kind.observe(context);
    check();
    // Seen to have ended, by others' work perhaps, while the request was never answered.
    if (ends_intent(verdict.kind) && !context.state.acted &&
        !co_await shut_out_late_request(context)) {
      verdict = steps::verdict(
          Verdict::Kind::kUnknown,
          fmt::format("the request may still arrive, and the agent of {} does not answer",
                      step.node));
    }
    auto news = new_values(verdict.values);
    const auto record_end = [&](std::string_view type, json data) {
      news.push_back(new_event(type, std::move(data)));
      record_all(std::move(news));
    };
    switch (verdict.kind) {
      case Verdict::Kind::kRunning:
        tell_progress(step, verdict, std::move(news));
        break;
      case Verdict::Kind::kDone:
        failpoint(step, "before-outcome");
        record_end(events::kStepDone, {{"step", step.id}, {"result", parsed(verdict.result)}});
        failpoint(step, "after-outcome");
        if (broken().second_resign && step.cost.leader_move &&
            context.snapshot.leader() != nullptr) {
          static_cast<void>(co_await context.peers->resign(context.snapshot.leader()->name));
        }
        co_return StepEnd::kDone;
      case Verdict::Kind::kNotArrived:
        if (!co_await ask_again(stage, step, context)) {
          co_return std::nullopt;
        }
        break;
      case Verdict::Kind::kNotHappened:
        record_end(events::kStepRetry, {{"step", step.id},
                                        {"reason", verdict.reason},
                                        {"outcome", verdict.outcome},
                                        {"counts", true}});
        back_off(step, verdict.reason);
        co_await sleep_for(poll());
        co_return std::nullopt;
      case Verdict::Kind::kStopped:
        record_end(events::kStepInterrupted,
                   {{"step", step.id}, {"reason", verdict.reason}, {"outcome", verdict.outcome}});
        if (!context.state.interrupting) {
          back_off(step, verdict.reason);
        }
        co_return std::nullopt;
      case Verdict::Kind::kFailed:
        record_end(events::kStepFailed,
                   {{"step", step.id}, {"code", "failed"}, {"reason", verdict.reason}});
        co_return StepEnd::kFailed;
      case Verdict::Kind::kUnknown:
        tell_unknown(step, verdict, std::move(news));
        if (is_skipped(step)) {
          co_return StepEnd::kSkipped;
        }
        break;
    }
    if (past_deadline(stage, step, "under way")) {
      record(events::kStepFailed,
             {{"step", step.id},
              {"code", "deadline"},
              {"reason", fmt::format("deadline passed; {}", state_of(step).reason)}});
      co_return StepEnd::kFailed;
    }
    unknown = verdict.kind == Verdict::Kind::kUnknown ? unknown + 1 : 0;
    if (verdict.kind != Verdict::Kind::kNotArrived) {
      const auto pause = until_next_look(context.in_state, poll());
      co_await interrupt_if_wanted(step, context_of(step, std::move(context.snapshot)));
      co_await sleep_for(unknown > 0 ? poll() * std::min(unknown, kSlowestLook) : pause);
    }
  }
}

}  // namespace verger::controller::detail
