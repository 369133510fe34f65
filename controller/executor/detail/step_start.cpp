#include "controller/executor/detail/step_start.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "engine/base/clock.h"
#include "engine/base/mutation.h"

// The beginning of a step: gates -> permits -> intent -> act. What a crash leaves behind:
//   before the intent       nothing was sent; the step starts over with its gates
//   after the intent        it may have been sent: its node is looked at before anything else
//   after the act           the same; the reply is not needed
//   before the outcome      the node still shows it, and is looked at again
namespace verger::controller::detail {

using nlohmann::json;

namespace {

std::string_view to_string(ActAnswer::Kind kind) {
  switch (kind) {
    case ActAnswer::Kind::kAccepted:
      return "accepted";
    case ActAnswer::Kind::kRefused:
      return "refused";
    case ActAnswer::Kind::kNotSent:
      return "not-sent";
    case ActAnswer::Kind::kUnknown:
      return "unknown";
  }
  return "unknown";
}

/// While nothing but its hours holds a step back, the cluster is looked at only now and then: for
/// those who watch the run, and for what should raise an alert.
constexpr std::chrono::seconds kLookWhileClosed{30};
/// A policy that is changed or deleted opens them at any time.
constexpr std::chrono::seconds kAskForHours{5};

std::chrono::milliseconds until_asked_again(const std::optional<planner::Hours>& hours, Ticks now) {
  if (!hours || !hours->until) {
    return kAskForHours;
  }
  const std::chrono::milliseconds left(
      (hours->until->value() - now.value() + kTicksPerMillisecond - 1) / kTicksPerMillisecond);
  return std::clamp<std::chrono::milliseconds>(left, std::chrono::milliseconds(0), kAskForHours);
}

}  // namespace

void StepStart::tell_waiting(const planner::Step& step, const std::string& reason, json gates) {
  const auto& state = run_->state_of(step);
  if (state.status != StepStatus::kWaiting || state.reason != reason) {
    run_->record(events::kStepWaiting,
                 {{"step", step.id}, {"reason", reason}, {"gates", std::move(gates)}});
  }
}

/// Closed hours are no delay. Returns where they are others than those that were `seen`.
net::awaitable<void> StepStart::wait_for_hours(const planner::Stage& stage,
                                               const planner::Step& step,
                                               std::optional<planner::Hours> seen) {
  const auto began = run_->monotonic();
  run_->live().closed_since.erase(step.id);
  do {
    co_await run_->sleep_for(
        std::max(run_->poll(), until_asked_again(seen, run_->parts().network.clock.now())));
  } while (run_->monotonic() - began < kLookWhileClosed && run_->hours(run_->cluster()) == seen &&
           !run_->cancelling() && !run_->pausing() && !run_->is_left_out(stage, step) &&
           !run_->must_finish(stage) && !run_->live().group_failed);
  run_->live().stop_deadlines(began, run_->monotonic());
}

net::awaitable<void> StepStart::wait_for_gate(const planner::Stage& stage,
                                              const planner::Step& step, std::string reason,
                                              json gates) {
  tell_waiting(step, reason, std::move(gates));
  gates_.track(step, reason, parsed(run_->state_of(step).gates));
  if (run_->past_deadline(stage, step, "waiting")) {
    run_->record(events::kStepFailed, {{"step", step.id},
                                       {"code", "deadline"},
                                       {"reason", fmt::format("deadline passed: {}", reason)}});
    co_return;
  }
  co_await run_->sleep_for(run_->poll());
}

net::awaitable<std::optional<StepEnd>> StepStart::start(const planner::Stage& stage,
                                                        const planner::Step& step) {
  if (const auto found = run_->live().back_off.find(step.id);
      found != run_->live().back_off.end() && run_->monotonic() < found->second.until) {
    co_await run_->sleep_for(run_->poll());
    co_return std::nullopt;
  }
  auto context = run_->context_of(step, co_await run_->look(step));
  if (auto why = run_->kind_of(step).too_late(context); !why.empty()) {
    run_->record(events::kStepFailed,
                 {{"step", step.id}, {"code", "too-late"}, {"reason", std::move(why)}});
    co_return StepEnd::kFailed;
  }
  auto closed = gates_.closed(stage, step, context);
  if (closed.deferred) {
    co_return StepEnd::kDeferred;
  }
  if (!closed.reason.empty()) {
    if (closed.only_hours && stage.on_failure == planner::FailureRule::kUndoAll && !stage.atomic &&
        run_->has_begun(stage)) {
      co_return StepEnd::kClosed;
    }
    if (closed.only_hours) {
      tell_waiting(step, closed.reason, closed.gates);
      gates_.track_fit(step, closed);
      co_await wait_for_hours(stage, step, std::move(context.snapshot.hours));
    } else {
      co_await wait_for_gate(stage, step, std::move(closed.reason), std::move(closed.gates));
    }
    co_return std::nullopt;
  }
  auto& kind = run_->kind_of(step);
  const auto readiness = co_await kind.prepare(context);
  run_->check();
  switch (readiness.kind) {
    case Readiness::Kind::kReady:
      break;
    case Readiness::Kind::kWait:
      if (!readiness.alert.empty()) {
        run_->alert_once(step.id, "waits", readiness.alert);
      }
      co_await wait_for_gate(stage, step, readiness.reason);
      co_return std::nullopt;
    case Readiness::Kind::kNotNeeded: {
      auto news = run_->new_values(readiness.values);
      news.push_back(
          {std::string(events::kStepDone), {{"step", step.id}, {"result", *readiness.result}}});
      run_->record_all(std::move(news));
      if (!readiness.alert.empty()) {
        run_->alert_once("", fmt::format("left-{}", step.id), readiness.alert);
      }
      co_return StepEnd::kDone;
    }
    case Readiness::Kind::kFail:
      run_->record(events::kStepFailed,
                   {{"step", step.id}, {"code", "not-possible"}, {"reason", readiness.reason}});
      co_return StepEnd::kFailed;
  }
  if (context.state.attempt - context.state.attempts_before_rollback >= step.attempts) {
    run_->record(events::kStepFailed,
                 {{"step", step.id},
                  {"code", "attempts"},
                  {"reason", fmt::format("{} attempts: {}", context.state.attempt,
                                         context.state.reason.empty() ? "no success"
                                                                      : context.state.reason)}});
    co_return StepEnd::kFailed;
  }
  context.state.memo = readiness.memo;
  context.not_seen = closed.not_seen.dump();
  co_return co_await act(stage, step, std::move(context), false, readiness.values);
}

net::awaitable<std::optional<StepEnd>> StepStart::act(const planner::Stage& stage,
                                                      const planner::Step& step,
                                                      StepContext context, bool again,
                                                      std::map<std::string, std::string> values) {
  run_->failpoint(step, "before-permit");
  if (!again) {
    ++context.state.attempt;
    // Chosen before the permit, which is for this operation and no other: an intent that was given
    // up may leave a message under way, and the next one can have the same number.
    context.state.operation = run_->parts().random.uuid().to_string();
  }
  const auto permitted = co_await permits_.permit(context, run_->parts().options.permit_valid_for);
  if (!permitted) {
    auto reason = fmt::format("an agent gives no permit: {}", permitted.error().message);
    if (again) {
      co_await run_->sleep_for(
          run_->poll());  // the intent stands; watch_step says what it waits for
    } else {
      co_await wait_for_gate(stage, step, std::move(reason));
    }
    co_return std::nullopt;
  }
  const bool pausing = run_->pausing() && !run_->must_finish(stage);
  if (run_->cancelling() || run_->must_undo(stage) || run_->is_left_out(stage, step) ||
      (pausing && !again)) {
    co_return std::nullopt;
  }
  run_->failpoint(step, "before-intent");
  if (!again) {
    auto news = run_->new_values(values);
    news.push_back({std::string(events::kStepIntended),
                    {{"step", step.id},
                     {"operation", context.state.operation},
                     {"attempt", context.state.attempt},
                     {"memo", *context.state.memo},
                     {"not_seen", parsed(context.not_seen)}}});
    run_->record_all(std::move(news));
    run_->live().closed_since.erase(step.id);
    run_->live().watched.insert(step.id);
  }
  run_->failpoint(step, "after-intent");
  context.state = run_->state_of(step);
  const auto answer = co_await run_->kind_of(step).act(context);
  run_->check();
  run_->failpoint(step, "after-act");
  const bool refused = answer.kind == ActAnswer::Kind::kRefused;
  const bool not_sent = answer.kind == ActAnswer::Kind::kNotSent;
  if (refused || (not_sent && !again)) {
    // A refusal is one; that it was not sent costs no attempt.
    co_await give_up_intent(step, context, answer.reason, refused);
    run_->back_off(step, answer.reason);
    co_await run_->sleep_for(run_->poll());
    co_return std::nullopt;
  }
  if (is_mutated("reply-is-deed") && answer.kind == ActAnswer::Kind::kAccepted) {
    run_->record(events::kStepDone, {{"step", step.id}, {"result", *answer.memo}});
    co_return StepEnd::kDone;
  }
  if (!not_sent) {
    run_->record(events::kStepActed, {{"step", step.id},
                                      {"operation", context.state.operation},
                                      {"answer", to_string(answer.kind)},
                                      {"reason", answer.reason},
                                      {"memo", *answer.memo}});
  } else {
    co_await run_->sleep_for(run_->poll());
  }
  co_return std::nullopt;
}

net::awaitable<bool> StepStart::give_up_intent(const planner::Step& step, StepContext context,
                                               std::string reason, bool counts) {
  // Where it was sent before, it may still be under way: first the permit goes.
  const auto revoked = co_await permits_.permit_at_own_agent(context, std::chrono::milliseconds(0));
  if (!revoked) {
    if (run_->is_news("revoke " + step.id, revoked.error().message)) {
      run_->parts().network.log.warning("a permit could not be revoked",
                                        {{"step", step.id}, {"reason", revoked.error().message}});
    }
    co_return false;
  }
  run_->record(events::kStepRetry,
               {{"step", step.id}, {"reason", std::move(reason)}, {"counts", counts}});
  co_return true;
}

}  // namespace verger::controller::detail
