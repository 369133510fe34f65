#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/detail/run_driver.h"
#include "controller/executor/detail/skipped_nodes.h"
#include "controller/executor/events.h"
#include "engine/base/clock.h"
#include "planner/gates.h"

// The beginning of a step: gates -> permits -> intent -> act. What a crash leaves behind:
//   before the intent       nothing was asked; the step starts over with its gates
//   after the intent        it may have been asked: its node is looked at before anything else
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

/// How long the oldest of the gates has been closed that hold the step up, its hours not among
/// them.
std::chrono::milliseconds closed_for(const std::string& gates, Ticks now) {
  std::int64_t oldest = now.value();
  for (const auto& gate : json::parse(gates, nullptr, false)) {
    const auto since = gate.is_object() && gate.value("gate", std::string()) != "hours"
                           ? parse_ticks(gate.value("since", std::string()))
                           : Result<Ticks>(now);
    oldest = std::min(oldest, since ? since->value() : now.value());
  }
  return std::chrono::milliseconds((now.value() - oldest) / kTicksPerMillisecond);
}

/// While nothing but its hours holds a step back, the cluster is looked at only now and then: for
/// those who watch the run, and for whatever a person should be told of.
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

void RunDriver::tell_waiting(const planner::Step& step, const std::string& reason, json gates) {
  const auto& state = state_of(step);
  if (state.status != StepStatus::kWaiting || state.reason != reason) {
    record(events::kStepWaiting,
           {{"step", step.id}, {"reason", reason}, {"gates", std::move(gates)}});
  }
}

/// Closed hours are no delay. Returns where they are others than those that were `seen`.
net::awaitable<void> RunDriver::wait_for_hours(const planner::Step& step,
                                               std::optional<planner::Hours> seen) {
  const auto began = monotonic();
  run_->waiting_since.erase(step.id);
  do {
    co_await nap(std::max(poll(), until_asked_again(seen, core_->parts.network.clock.now())));
  } while (monotonic() - began < kLookWhileClosed && hours(cluster()) == seen && !cancelling() &&
           !pausing() && !is_skipped(step) && !run_->group_failed);
  run_->stop_deadlines(began, monotonic());
}

net::awaitable<void> RunDriver::wait_for_gate(const planner::Stage& stage,
                                              const planner::Step& step, std::string reason,
                                              json gates) {
  tell_waiting(step, reason, std::move(gates));
  auto [since, is_new] = run_->waiting_since.try_emplace(step.id, monotonic());
  if (is_new) {
    // Before this controller's start there may have been another.
    since->second -= closed_for(state_of(step).gates, core_->parts.network.clock.now());
  }
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

net::awaitable<Result<void>> RunDriver::permit(StepContext context,
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
  // What brings a node back to how it was must not wait for the others: the agent that acts refuses
  // older epochs by itself.
  const bool restores =
      context.state.undoing || std::ranges::find(context.step.gates, "agents-answer",
                                                 &planner::Gate::name) == context.step.gates.end();
  std::vector<net::awaitable<Result<void>>> asks;
  for (const auto& node : context.cluster.nodes) {
    // The step's own agent is the one that must not let a late request in, skipped or not.
    const bool counts =
        node.name == context.step.node || (!restores && !context.skipped_nodes.contains(node.name));
    if (!node.agent_url.empty() && counts) {
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

void RunDriver::ClosedGates::add(const planner::GateState& state) {
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

bool RunDriver::may_still_arrive(std::string_view node, const StepContext& context) const {
  // Until then its agent may still have the permit, and begin what it was asked for.
  const auto limit = core_->parts.options.permit_valid_for;
  for (const auto& stage : run_->state.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (step.node == node && run_->state.steps.at(step.id).end_unseen &&
            in_state(step, context.now) <= limit) {
          return true;
        }
      }
    }
  }
  return false;
}

void RunDriver::add_left_behind(const planner::Step& step, const StepContext& context,
                                ClosedGates& closed) {
  const auto skipped = run_->state.skipped_nodes;
  for (const auto& node : skipped) {
    if (run_->state.disregarded_nodes.contains(node)) {
      continue;
    }
    auto left = left_behind(run_->state, context.snapshot, node);
    if (!left && may_still_arrive(node, context)) {
      left = LeftBehind{.what = "may still begin what it was asked to do"};
    }
    if (!left) {
      if (!unseen_step(run_->state, node).empty()) {
        record(events::kSkippedNodeIdle, {{"node", node}});
      }
      continue;
    }
    if (waits_for_others(step)) {
      planner::GateState state;
      state.gate = "no-other-work";
      state.code = left->seen ? "skipped-node-works" : "skipped-node-unseen";
      state.node = node;
      state.reason = fmt::format("it {}; {}", left->what, how_to_disregard(run_->state, node));
      state.value = left->what;
      state.limit = "none";
      closed.add(state);
    }
  }
}

RunDriver::ClosedGates RunDriver::closed_gates(const planner::Stage& stage,
                                               const planner::Step& step,
                                               const StepContext& context) {
  ClosedGates closed;
  const bool may_put_off =
      run_->state.stages.at(stage.id).put_off == 0 && &step == &stage.groups.front().front();
  for (const auto& gate : step.gates) {
    for (const auto& state :
         planner::evaluate(gate, context.snapshot, step.node, step.expected.high_ms)) {
      if (state.verdict == planner::GateVerdict::kOpen ||
          context.skipped_nodes.contains(state.node)) {
        continue;
      }
      if (state.verdict == planner::GateVerdict::kPutOff && may_put_off) {
        closed.put_off = true;
        return closed;
      }
      if (state.verdict == planner::GateVerdict::kPutOff) {
        alert_once(
            step.id, "not-leader",
            fmt::format("{} waits: {} leads the cluster, and its turn was put off once; move "
                        "the leadership by hand, or leave the node out with `verger run skip`",
                        step.id, step.node));
      }
      closed.add(state);
    }
  }
  add_left_behind(step, context, closed);
  if (closed.reason.empty()) {
    planner::GateState hours;
    hours.gate = "hours";
    hours.code = "does-not-fit";
    hours.node = step.node;
    hours.reason = does_not_fit(stage, step, context);
    if (!hours.reason.empty()) {
      closed.add(hours);
    }
  }
  return closed;
}

net::awaitable<std::optional<StepEnd>> RunDriver::start_step(const planner::Stage& stage,
                                                             const planner::Step& step) {
  if (const auto found = run_->back_off.find(step.id);
      found != run_->back_off.end() && monotonic() < found->second.until) {
    co_await nap(poll());
    co_return std::nullopt;
  }
  auto context = context_of(step, co_await look());
  auto closed = closed_gates(stage, step, context);
  if (closed.put_off) {
    co_return StepEnd::kPutOff;
  }
  if (!closed.reason.empty()) {
    if (closed.only_hours && stage.on_failure == planner::FailureRule::kUndoAll &&
        has_begun(stage)) {
      co_return StepEnd::kClosed;
    }
    if (closed.only_hours) {
      tell_waiting(step, closed.reason, std::move(closed.gates));
      co_await wait_for_hours(step, std::move(context.snapshot.hours));
    } else {
      co_await wait_for_gate(stage, step, std::move(closed.reason), std::move(closed.gates));
    }
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
    case Readiness::Kind::kNotNeeded: {
      auto news = new_values(readiness.values);
      news.push_back({std::string(events::kStepDone),
                      {{"step", step.id}, {"result", parsed(readiness.note)}}});
      record_all(std::move(news));
      co_return StepEnd::kDone;
    }
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
    // Chosen before the permit, which is for this operation and no other: an intent that was given
    // up may leave a message under way, and the next one can have the same number.
    context.state.operation = core_->parts.random.uuid().to_string();
  }
  const auto permitted = co_await permit(context, core_->parts.options.permit_valid_for);
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
                                   {"operation", context.state.operation},
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
    back_off(step, answer.note);
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

net::awaitable<bool> RunDriver::shut_out_late_request(StepContext context) {
  const auto* node = context.node();
  if (node == nullptr || !node->has_agent()) {
    co_return true;
  }
  api::Permit permit;
  permit.controller_epoch = core_->parts.epoch.value();
  permit.run = context.run;
  permit.step = context.attempt_name();
  permit.valid_for_ms = 0;
  const auto answer = co_await context.peers->permit(context.step.node, std::move(permit));
  check();
  co_return answer.has_value();
}

net::awaitable<bool> RunDriver::give_up_intent(const planner::Step& step, StepContext context,
                                               std::string reason, bool counts) {
  // Where it was sent before, it may still be under way: first the permit goes.
  const auto revoked = co_await permit(context, std::chrono::milliseconds(0));
  if (!revoked) {
    core_->parts.network.log.warning("a permit could not be taken back",
                                     {{"step", step.id}, {"reason", revoked.error().message}});
    co_return false;
  }
  record(events::kStepRetry,
         {{"step", step.id}, {"reason", std::move(reason)}, {"counts", counts}});
  co_return true;
}

}  // namespace verger::controller::detail
