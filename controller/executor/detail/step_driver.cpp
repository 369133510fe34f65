#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/detail/run_driver.h"
#include "controller/executor/events.h"
#include "engine/base/clock.h"
#include "planner/gates.h"

// One step: gates -> permits -> intent -> act -> observe -> outcome. What a crash leaves behind:
//   before the intent       nothing was asked; the step starts over with its gates
//   after the intent        it may have been asked: its node is looked at before anything else
//   after the act           the same; the reply is not needed
//   before the outcome      the node still shows it, and is looked at again
namespace verger::controller::detail {
namespace {

using nlohmann::json;

json parsed(const std::string& text) {
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json::object() : value;
}

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
    co_await act(stage, step, context_of(step, co_await look()), false);
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
    co_await nap(poll());
  }
  if (paused) {
    // Deadlines do not run while the run is paused.
    const auto gone = monotonic() - began;
    for (auto& [id, deadline] : run_->deadlines) {
      deadline += gone;
    }
    run_->waiting_since.clear();
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
    // Stopping the run would undo nothing and help nobody: it waits for a person, loudly.
    alert_once(step.id, "deadline",
               fmt::format("{}; `verger run skip` leaves the node out", reason));
    return false;
  }
  alert_once(step.id, "deadline", std::move(reason));
  return true;
}

std::string RunDriver::does_not_fit(const planner::Stage& stage, const planner::Step& step,
                                    const StepContext& context) const {
  const auto& hours = context.snapshot.hours;
  if (!hours || !hours->open || !hours->until ||
      std::ranges::find(step.gates, "hours", &planner::Gate::name) == step.gates.end() ||
      kind_of(step).can_interrupt(context, Interrupt::kHours)) {
    return "";
  }
  // A stage that undoes all is one piece of work: its first step needs room for the rest.
  std::int64_t needs = 0;
  bool from_here = false;
  for (const auto& group : stage.groups) {
    std::int64_t longest = 0;
    for (const auto& each : group) {
      from_here = from_here || &each == &step;
      if (from_here && (&each == &step || stage.on_failure == planner::FailureRule::kUndoAll)) {
        longest = std::max(longest, each.expected.high_ms);
      }
    }
    needs += longest;
  }
  const auto left = (hours->until->value() - context.now.value()) / kTicksPerMillisecond;
  if (needs <= left) {
    return "";
  }
  return fmt::format("up to {} s are expected, it cannot be interrupted, and its hours end at {}",
                     (needs + 999) / 1000, format_ticks(*hours->until));
}

net::awaitable<void> RunDriver::wait_for_gate(const planner::Stage& stage,
                                              const planner::Step& step, std::string reason,
                                              json gates, bool for_hours) {
  const auto& state = state_of(step);
  if (state.status != StepStatus::kWaiting || state.reason != reason) {
    record(events::kStepWaiting,
           {{"step", step.id}, {"reason", reason}, {"gates", std::move(gates)}});
  }
  if (for_hours) {
    // Closed hours are no delay: no deadline runs while they last.
    const auto began = monotonic();
    run_->waiting_since.erase(step.id);
    co_await nap(poll());
    if (const auto deadline = run_->deadlines.find(stage.id); deadline != run_->deadlines.end()) {
      deadline->second += monotonic() - began;
    }
    co_return;
  }
  const auto [since, is_new] = run_->waiting_since.try_emplace(step.id, monotonic());
  const auto limit = run_->state.plan->policy.scavenge.gate_deadline_ms;
  if (monotonic() - since->second >= std::chrono::milliseconds(limit)) {
    alert_once(step.id, "gate",
               fmt::format("{} has waited for {} ms: {}; `verger run skip` leaves the node out",
                           step.id, limit, reason));
  }
  if (past_deadline(stage, step, "waiting")) {
    record(events::kStepFailed, {{"step", step.id},
                                 {"code", "deadline"},
                                 {"reason", fmt::format("deadline passed: {}", reason)}});
    co_return;
  }
  co_await nap(poll());
}

net::awaitable<Result<void>> RunDriver::permit_everywhere(StepContext context,
                                                          std::chrono::milliseconds valid_for) {
  struct Ask {
    static net::awaitable<Result<void>> one(std::shared_ptr<Peers> peers, std::string node,
                                            api::Permit permit) {
      auto answer = co_await peers->permit(node, std::move(permit));
      if (!answer) {
        co_return answer.error().within(node);
      }
      co_return answer;
    }
  };
  api::Permit permit;
  permit.controller_epoch = core_->parts.epoch.value();
  permit.run = context.run;
  permit.step = context.attempt_name();
  permit.valid_for_ms = valid_for.count();
  std::vector<net::awaitable<Result<void>>> asks;
  for (const auto& node : context.cluster.nodes) {
    if (!node.agent_url.empty() && !context.skipped_nodes.contains(node.name)) {
      asks.push_back(Ask::one(context.peers, node.name, permit));
    }
  }
  const auto answers = co_await gather(std::move(asks));
  check();
  for (const auto& answer : answers) {
    if (!answer) {
      co_return answer.error();
    }
  }
  co_return Result<void>{};
}

net::awaitable<std::optional<StepEnd>> RunDriver::start_step(const planner::Stage& stage,
                                                             const planner::Step& step) {
  auto context = context_of(step, co_await look());
  const bool may_put_off =
      run_->state.stages.at(stage.id).put_off == 0 && &step == &stage.groups.front().front();
  std::string reason;
  auto gates = json::array();
  bool only_hours = true;
  for (const auto& gate : step.gates) {
    for (const auto& state : planner::evaluate(gate, context.snapshot, step.node)) {
      if (state.verdict == planner::GateVerdict::kOpen ||
          context.skipped_nodes.contains(state.node)) {
        continue;
      }
      if (state.verdict == planner::GateVerdict::kPutOff && may_put_off) {
        co_return StepEnd::kPutOff;
      }
      reason += fmt::format("{}{}{}{}", reason.empty() ? "" : "; ", state.node,
                            state.node.empty() ? "" : ": ", state.reason);
      only_hours = only_hours && state.gate == "hours";
      gates.push_back({{"gate", state.gate},
                       {"code", state.code},
                       {"node", state.node},
                       {"reason", state.reason},
                       {"value", state.value},
                       {"limit", state.limit}});
    }
  }
  if (reason.empty()) {
    reason = does_not_fit(stage, step, context);
    if (!reason.empty()) {
      gates.push_back({{"gate", "hours"},
                       {"code", "does-not-fit"},
                       {"node", step.node},
                       {"reason", reason},
                       {"value", ""},
                       {"limit", ""}});
    }
  }
  if (!reason.empty()) {
    if (only_hours && stage.on_failure == planner::FailureRule::kUndoAll && has_begun(stage)) {
      co_return StepEnd::kClosed;
    }
    co_await wait_for_gate(stage, step, std::move(reason), std::move(gates), only_hours);
    co_return std::nullopt;
  }
  auto& kind = kind_of(step);
  const auto readiness = co_await kind.prepare(context);
  check();
  switch (readiness.kind) {
    case Readiness::Kind::kReady:
      break;
    case Readiness::Kind::kWait:
      co_await wait_for_gate(stage, step, readiness.note);
      co_return std::nullopt;
    case Readiness::Kind::kNotNeeded:
      record(events::kStepDone, {{"step", step.id}, {"result", parsed(readiness.note)}});
      co_return StepEnd::kDone;
    case Readiness::Kind::kFail:
      record(events::kStepFailed,
             {{"step", step.id}, {"code", "not-possible"}, {"reason", readiness.note}});
      co_return StepEnd::kFailed;
  }
  if (context.state.attempt - context.state.forgiven >= step.attempts) {
    record(events::kStepFailed,
           {{"step", step.id},
            {"code", "attempts"},
            {"reason",
             fmt::format("{} attempts: {}", context.state.attempt,
                         context.state.reason.empty() ? "no success" : context.state.reason)}});
    co_return StepEnd::kFailed;
  }
  context.state.memo = readiness.note;
  co_return co_await act(stage, step, std::move(context), false);
}

net::awaitable<std::optional<StepEnd>> RunDriver::act(const planner::Stage& stage,
                                                      const planner::Step& step,
                                                      StepContext context, bool again) {
  failpoint(step, "before-permit");
  if (!again) {
    ++context.state.attempt;
  }
  const auto permitted = co_await permit_everywhere(context, core_->parts.options.permit_valid_for);
  if (!permitted) {
    auto reason = fmt::format("an agent gives no permit: {}", permitted.error().message);
    if (again) {
      co_await nap(poll());  // the intent stands; watch_step says what it waits for
    } else {
      co_await wait_for_gate(stage, step, std::move(reason));
    }
    co_return std::nullopt;
  }
  if (cancelling() || is_skipped(step) || (pausing() && !again)) {
    co_return std::nullopt;
  }
  failpoint(step, "before-intent");
  if (!again) {
    record(events::kStepIntended, {{"step", step.id},
                                   {"operation", core_->parts.random.uuid().to_string()},
                                   {"attempt", context.state.attempt},
                                   {"memo", parsed(context.state.memo)}});
    run_->waiting_since.erase(step.id);
  }
  failpoint(step, "after-intent");
  context.state = state_of(step);
  const auto answer = co_await kind_of(step).act(context);
  check();
  failpoint(step, "after-act");
  const bool refused = answer.kind == ActAnswer::Kind::kRefused;
  const bool not_sent = answer.kind == ActAnswer::Kind::kNotSent;
  if (refused || (not_sent && !again)) {
    // A refusal is one; that it was not sent costs no attempt.
    co_await give_up_intent(step, context, answer.note, refused);
    co_await nap(poll());
    co_return std::nullopt;
  }
  if (broken().reply_is_deed && answer.kind == ActAnswer::Kind::kAccepted) {
    record(events::kStepDone, {{"step", step.id}, {"result", parsed(answer.memo)}});
    co_return StepEnd::kDone;
  }
  if (!not_sent) {
    record(events::kStepActed, {{"step", step.id},
                                {"operation", context.state.operation},
                                {"answer", to_string(answer.kind)},
                                {"reason", answer.note},
                                {"memo", parsed(answer.memo)}});
  } else {
    co_await nap(poll());
  }
  co_return std::nullopt;
}

net::awaitable<bool> RunDriver::give_up_intent(const planner::Step& step, StepContext context,
                                               std::string reason, bool counts) {
  // Where it was sent before, it may still be under way: first the permit goes.
  const auto revoked = co_await permit_everywhere(context, std::chrono::milliseconds(0));
  if (!revoked) {
    core_->parts.network.log.warning("a permit could not be taken back",
                                     {{"step", step.id}, {"reason", revoked.error().message}});
    co_return false;
  }
  record(events::kStepRetry,
         {{"step", step.id}, {"reason", std::move(reason)}, {"counts", counts}});
  co_return true;
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
  // "Now" stops what can be stopped at all, whatever the policy says of pauses.
  const bool now = by_pause && run_->state.pause_mode == PauseMode::kNow;
  if (!kind_of(step).can_interrupt(context, now ? Interrupt::kCancel : *why)) {
    co_return;
  }
  // Journaled before it is asked, so that a stop is never taken for somebody else's.
  const bool was_told = state_of(step).interrupting;
  if (!was_told) {
    record(events::kStepInterrupting, {{"step", step.id}, {"why", to_string(*why)}});
    context.state.interrupting = true;
  }
  co_await kind_of(step).interrupt(std::move(context));
  check();
}

net::awaitable<std::optional<StepEnd>> RunDriver::watch_step(const planner::Stage& stage,
                                                             const planner::Step& step) {
  auto& kind = kind_of(step);
  for (;;) {
    auto context = context_of(step, co_await look());
    const auto verdict = co_await kind.observe(context);
    check();
    std::vector<NewEvent> news;
    for (const auto& [name, value] : verdict.values) {
      const auto known = run_->state.values.find(name);
      if (known == run_->state.values.end() || parsed(known->second) != parsed(value)) {
        news.push_back({std::string(events::kRunValue),
                        json{{"name", name}, {"value", parsed(value)}}.dump()});
      }
    }
    const auto add = [&news](std::string_view type, const json& data) {
      news.push_back({std::string(type), data.dump()});
    };
    switch (verdict.kind) {
      case Verdict::Kind::kRunning: {
        const auto& state = state_of(step);
        auto& told = run_->progress_told[step.id];
        const bool memo_is_new = parsed(verdict.memo).size() != 0;
        const bool changed = parsed(state.progress) != parsed(verdict.note);
        const bool due = monotonic() - told >= core_->parts.options.progress_interval;
        if (state.status == StepStatus::kUnknown || memo_is_new || (changed && due)) {
          told = monotonic();
          add(events::kStepProgress, {{"step", step.id},
                                      {"progress", parsed(verdict.note)},
                                      {"memo", parsed(verdict.memo)}});
        }
        if (!news.empty()) {
          record_all(std::move(news));
        }
        break;
      }
      case Verdict::Kind::kDone:
        failpoint(step, "before-outcome");
        add(events::kStepDone, {{"step", step.id}, {"result", parsed(verdict.note)}});
        record_all(std::move(news));
        failpoint(step, "after-outcome");
        if (broken().second_resign && step.cost.leader_move &&
            context.snapshot.leader() != nullptr) {
          static_cast<void>(co_await context.peers->resign(context.snapshot.leader()->name));
        }
        co_return StepEnd::kDone;
      case Verdict::Kind::kNotArrived:
        if (cancelling() || is_skipped(step) || pausing()) {
          if (co_await give_up_intent(step, context, "it was never asked", false)) {
            co_return std::nullopt;
          }
          co_await nap(poll());
          break;
        }
        co_await act(stage, step, std::move(context), true);
        break;
      case Verdict::Kind::kNotHappened:
        add(events::kStepRetry, {{"step", step.id},
                                 {"reason", verdict.note},
                                 {"outcome", verdict.outcome},
                                 {"counts", true}});
        record_all(std::move(news));
        co_await nap(poll());
        co_return std::nullopt;
      case Verdict::Kind::kStopped:
        add(events::kStepInterrupted,
            {{"step", step.id}, {"reason", verdict.note}, {"outcome", verdict.outcome}});
        record_all(std::move(news));
        co_return std::nullopt;
      case Verdict::Kind::kFailed:
        add(events::kStepFailed, {{"step", step.id}, {"code", "failed"}, {"reason", verdict.note}});
        record_all(std::move(news));
        co_return StepEnd::kFailed;
      case Verdict::Kind::kUnknown: {
        const auto& state = state_of(step);
        if (state.status != StepStatus::kUnknown || state.reason != verdict.note) {
          add(events::kStepUnknown, {{"step", step.id}, {"reason", verdict.note}});
        }
        if (is_skipped(step)) {
          add(events::kStepSkipped,
              {{"step", step.id},
               {"reason",
                fmt::format("its node is skipped; the outcome is not known: {}", verdict.note)}});
        }
        if (!news.empty()) {
          record_all(std::move(news));
        }
        if (is_skipped(step)) {
          co_return StepEnd::kSkipped;
        }
        break;
      }
    }
    if (past_deadline(stage, step, "under way")) {
      record(events::kStepFailed,
             {{"step", step.id},
              {"code", "deadline"},
              {"reason", fmt::format("deadline passed; {}", state_of(step).reason)}});
      co_return StepEnd::kFailed;
    }
    if (verdict.kind != Verdict::Kind::kNotArrived) {
      co_await interrupt_if_wanted(step, context_of(step, std::move(context.snapshot)));
      co_await nap(poll());
    }
  }
}

}  // namespace verger::controller::detail
