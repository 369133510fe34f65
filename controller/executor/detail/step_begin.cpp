#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/broken.h"
#include "controller/executor/detail/run_driver.h"
#include "controller/executor/detail/skipped_nodes.h"
#include "controller/executor/events.h"
#include "controller/executor/step_support.h"
#include "engine/base/clock.h"
#include "planner/gates.h"

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

/// How long the gate has been closed, as far as the journal knows.
std::chrono::milliseconds closed_for(const json& gate, Ticks now) {
  const auto since = parse_ticks(gate.value("since", std::string()));
  return std::chrono::milliseconds(
      since ? std::max<std::int64_t>(now.value() - since->value(), 0) / kTicksPerMillisecond : 0);
}

/// "90 s", "5 min", "24 h"
std::string length_text(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  return seconds < 120     ? fmt::format("{} s", seconds)
         : seconds < 7'200 ? fmt::format("{} min", seconds / 60)
                           : fmt::format("{} h", seconds / 3'600);
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

RunDriver::Fit RunDriver::fit(const planner::Stage& stage, const planner::Step& step,
                              const StepContext& context) const {
  const auto& hours = context.snapshot.hours;
  if (!hours || !hours->open || !hours->until ||
      std::ranges::find(step.gates, "hours", &planner::Gate::name) == step.gates.end() ||
      kind_of(step).can_interrupt(context, Interrupt::kHours)) {
    return {};
  }
  // A stage that undoes all is one piece of work: its first step needs room for the rest.
  std::int64_t needs = 0;
  bool from_here = false;
  bool known = true;
  for (const auto& group : stage.groups) {
    std::int64_t longest = 0;
    for (const auto& each : group) {
      from_here = from_here || &each == &step;
      if (from_here && (&each == &step || stage.on_failure == planner::FailureRule::kUndoAll)) {
        longest = std::max(longest, each.expected.high_ms);
        known = known && each.expected.is_known();
      }
    }
    needs += longest;
  }
  const auto closes = format_ticks(*hours->until);
  if (!known) {
    return {.problem = fmt::format("how long it takes is not known, it cannot be interrupted, and "
                                   "the window closes at {}; let it be interrupted (on_close: "
                                   "stop), or run it once without windows",
                                   closes),
            .never = true};
  }
  const auto until = hours->until->value();
  if (needs <= (until - context.now.value()) / kTicksPerMillisecond) {
    return {};
  }
  return {.problem = fmt::format("up to {} are expected, it cannot be interrupted, and the window "
                                 "closes at {}",
                                 length_text(std::chrono::milliseconds(needs + 999)), closes),
          .never = needs > (until - hours->since.value()) / kTicksPerMillisecond};
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
  run_->closed_since.erase(step.id);
  do {
    co_await sleep_for(std::max(poll(), until_asked_again(seen, core_->parts.network.clock.now())));
  } while (monotonic() - began < kLookWhileClosed && hours(cluster()) == seen && !cancelling() &&
           !pausing() && !is_skipped(step) && !run_->group_failed);
  run_->stop_deadlines(began, monotonic());
}

void RunDriver::track_closed_gates(const planner::Step& step, const std::string& reason,
                                   const json& gates) {
  const auto now = core_->parts.network.clock.now();
  const auto& limits = run_->state.plan->policy.limits;
  auto known = std::exchange(run_->closed_since[step.id], {});
  auto& closed = run_->closed_since[step.id];
  std::vector<std::string> late;  // what has been closed for too long
  std::chrono::milliseconds shortest{};
  const auto track = [&](const std::string& gate, const std::string& node, const std::string& why,
                         std::chrono::milliseconds age) {
    const auto what = fmt::format("{}:{}", gate, node);
    const auto before = known.find(what);
    // Before this controller's start there may have been another.
    const auto since = before == known.end() ? monotonic() - age : before->second;
    closed[what] = since;
    const std::chrono::milliseconds limit(planner::alert_after_ms(gate, limits));
    if (monotonic() - since >= limit) {
      shortest = late.empty() ? limit : std::min(shortest, limit);
      late.push_back(fmt::format("{}{}{}", node, node.empty() ? "" : ": ", why));
    }
  };
  for (const auto& gate : gates) {
    const auto name = gate.value("gate", std::string());
    if (name != "hours") {
      track(name, gate.value("node", std::string()), gate.value("reason", std::string()),
            closed_for(gate, now));
    }
  }
  if (gates.empty()) {
    track("", "", reason, in_state(step, now));
  }
  if (late.empty()) {
    clear_alert(step.id + "/gate");
  } else {
    alert_once(step.id, "gate",
               fmt::format("{} has waited for {}: {}; `verger run skip` leaves the node out",
                           step.id, length_text(shortest), fmt::join(late, "; ")));
  }
}

void RunDriver::track_fit(const planner::Step& step, const ClosedGates& closed) {
  track_closed_gates(step, closed.reason, closed.gates);
  const auto& since = state_of(step).does_not_fit_since;
  if (closed.fit.problem.empty() || !since) {
    return;
  }
  const auto waited = core_->parts.network.clock.now().value() - since->value();
  const auto limit = planner::alert_after_ms("does-not-fit", run_->state.plan->policy.limits);
  if (closed.fit.never || waited / kTicksPerMillisecond >= limit) {
    alert_once(step.id, "fit",
               fmt::format("{} does not fit into its hours: {}; `verger run skip` leaves the node "
                           "out",
                           step.id, closed.fit.problem));
  }
}

net::awaitable<void> RunDriver::wait_for_gate(const planner::Stage& stage,
                                              const planner::Step& step, std::string reason,
                                              json gates) {
  tell_waiting(step, reason, std::move(gates));
  track_closed_gates(step, reason, parsed(state_of(step).gates));
  if (past_deadline(stage, step, "waiting")) {
    record(events::kStepFailed, {{"step", step.id},
                                 {"code", "deadline"},
                                 {"reason", fmt::format("deadline passed: {}", reason)}});
    co_return;
  }
  co_await sleep_for(poll());
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
  // A reason that names its node needs no name before it.
  const bool named = state.node.empty() || state.reason.contains(" of " + state.node + " ");
  reason += fmt::format("{}{}{}", reason.empty() ? "" : "; ", named ? "" : state.node + ": ",
                        state.reason);
  only_hours = only_hours && state.gate == "hours";
  gates.push_back({{"gate", state.gate},
                   {"code", state.code},
                   {"node", state.node},
                   {"reason", state.reason},
                   {"value", state.value},
                   {"limit", state.limit}});
}

bool RunDriver::may_still_arrive(std::string_view node, const StepContext& context) const {
  // Until then its agent may still have the permit, and begin the requested operation.
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
      left = LeftBehind{.what = "may still begin the requested work"};
    }
    if (!left) {
      if (!unseen_step(run_->state, node).empty()) {
        record(events::kSkippedNodeIdle, {{"node", node}});
      }
      continue;
    }
    if (planner::waits_for_work_elsewhere(step)) {
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

/// The newest election is one that a step of this run asked for: the leader it brought was seen to
/// hold, or `step` itself asks again.
bool RunDriver::is_own_election(const planner::Step& step,
                                const planner::ClusterSnapshot& snapshot) const {
  if (step.cost.leader_move && run_->state.steps.at(step.id).attempt > 0) {
    return true;
  }
  const auto* leader = snapshot.leader();
  if (leader == nullptr) {
    return false;
  }
  for (const auto& stage : run_->state.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& each : group) {
        const auto& state = run_->state.steps.at(each.id);
        if (each.cost.leader_move && state.status == StepStatus::kDone &&
            parsed(state.result).value("epoch", -1) == leader->epoch_number) {
          return true;
        }
      }
    }
  }
  return false;
}

RunDriver::ClosedGates RunDriver::closed_gates(const planner::Stage& stage,
                                               const planner::Step& step,
                                               const StepContext& context) {
  ClosedGates closed;
  const bool may_defer =
      run_->state.stages.at(stage.id).deferrals == 0 && &step == &stage.groups.front().front();
  const auto threads = steps::int_parameter(step, "threads", 1);
  for (auto gate : step.gates) {
    if (is_gate_ignored(gate.name)) {
      continue;
    }
    if (gate.name == "leader-settled" && is_own_election(step, context.snapshot)) {
      gate.limit = std::min(gate.limit, context.policy.limits.own_move_settle_ms());
    }
    for (const auto& state :
         planner::evaluate(gate, context.snapshot, step.node, step.expected.high_ms, threads)) {
      if (state.verdict == planner::GateVerdict::kOpen && !state.reason.empty()) {
        closed.not_seen.push_back(
            {{"gate", state.gate}, {"node", state.node}, {"reason", state.reason}});
      }
      if (state.verdict == planner::GateVerdict::kOpen ||
          context.skipped_nodes.contains(state.node)) {
        continue;
      }
      if (state.verdict == planner::GateVerdict::kDeferred && may_defer) {
        closed.deferred = true;
        return closed;
      }
      if (state.verdict == planner::GateVerdict::kDeferred) {
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
    closed.fit = fit(stage, step, context);
    hours.reason = closed.fit.problem;
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
    co_await sleep_for(poll());
    co_return std::nullopt;
  }
  auto context = context_of(step, co_await look());
  auto closed = closed_gates(stage, step, context);
  if (closed.deferred) {
    co_return StepEnd::kDeferred;
  }
  if (!closed.reason.empty()) {
    if (closed.only_hours && stage.on_failure == planner::FailureRule::kUndoAll &&
        has_begun(stage)) {
      co_return StepEnd::kClosed;
    }
    if (closed.only_hours) {
      tell_waiting(step, closed.reason, closed.gates);
      track_fit(step, closed);
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
      if (!readiness.alert.empty()) {
        alert_once(step.id, "waits", readiness.alert);
      }
      co_await wait_for_gate(stage, step, readiness.reason);
      co_return std::nullopt;
    case Readiness::Kind::kNotNeeded: {
      auto news = new_values(readiness.values);
      news.push_back({std::string(events::kStepDone),
                      {{"step", step.id}, {"result", parsed(readiness.result)}}});
      record_all(std::move(news));
      if (!readiness.alert.empty()) {
        alert_once("", fmt::format("left-{}", step.id), readiness.alert);
      }
      co_return StepEnd::kDone;
    }
    case Readiness::Kind::kFail:
      record(events::kStepFailed,
             {{"step", step.id}, {"code", "not-possible"}, {"reason", readiness.reason}});
      co_return StepEnd::kFailed;
  }
  if (context.state.attempt - context.state.attempts_before_rollback >= step.attempts) {
    record(events::kStepFailed,
           {{"step", step.id},
            {"code", "attempts"},
            {"reason",
             fmt::format("{} attempts: {}", context.state.attempt,
                         context.state.reason.empty() ? "no success" : context.state.reason)}});
    co_return StepEnd::kFailed;
  }
  context.state.memo = readiness.memo;
  context.not_seen = closed.not_seen.dump();
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
      co_await sleep_for(poll());  // the intent stands; watch_step says what it waits for
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
                                   {"memo", parsed(context.state.memo)},
                                   {"not_seen", parsed(context.not_seen)}});
    run_->closed_since.erase(step.id);
    run_->watched.insert(step.id);
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
    co_await give_up_intent(step, context, answer.reason, refused);
    back_off(step, answer.reason);
    co_await sleep_for(poll());
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
                                {"reason", answer.reason},
                                {"memo", parsed(answer.memo)}});
  } else {
    co_await sleep_for(poll());
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
    if (is_news("revoke " + step.id, revoked.error().message)) {
      core_->parts.network.log.warning("a permit could not be revoked",
                                       {{"step", step.id}, {"reason", revoked.error().message}});
    }
    co_return false;
  }
  record(events::kStepRetry,
         {{"step", step.id}, {"reason", std::move(reason)}, {"counts", counts}});
  co_return true;
}

}  // namespace verger::controller::detail
