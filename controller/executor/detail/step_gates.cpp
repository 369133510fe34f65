#include "controller/executor/detail/step_gates.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/skipped_nodes.h"
#include "controller/executor/events.h"
#include "controller/executor/step_support.h"
#include "engine/base/clock.h"
#include "engine/base/mutation.h"

namespace verger::controller::detail {

using nlohmann::json;

namespace {

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

}  // namespace

Fit StepGates::fit(const planner::Stage& stage, const planner::Step& step,
                   const StepContext& context) const {
  const auto& hours = context.snapshot.hours;
  if (!hours || !hours->open || !hours->until ||
      std::ranges::find(step.gates, planner::kMaintenanceWindow, &planner::Gate::name) ==
          step.gates.end() ||
      run_->must_finish(stage) ||
      (!stage.atomic && run_->kind_of(step).can_interrupt(context, Interrupt::kHours))) {
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

void ClosedGates::add(const planner::GateState& state) {
  // A reason that names its node needs no name before it.
  const bool named = state.node.empty() || state.reason.contains(" of " + state.node + " ");
  reason += fmt::format("{}{}{}", reason.empty() ? "" : "; ", named ? "" : state.node + ": ",
                        state.reason);
  only_hours = only_hours && state.gate == planner::kMaintenanceWindow;
  gates.push_back({{"gate", state.gate},
                   {"code", state.code},
                   {"node", state.node},
                   {"reason", state.reason},
                   {"value", state.value},
                   {"limit", state.limit}});
}

bool StepGates::may_still_arrive(std::string_view node, const StepContext& context) const {
  // Until then its agent may still have the permit, and begin the requested operation.
  const auto limit = run_->parts().options.permit_valid_for;
  for (const auto& stage : run_->state().plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (step.node == node && run_->state().steps.at(step.id).end_unseen &&
            run_->in_state(step, context.now) <= limit) {
          return true;
        }
      }
    }
  }
  return false;
}

void StepGates::add_left_behind(const planner::Step& step, const StepContext& context,
                                ClosedGates& closed) {
  const auto skipped = run_->state().skipped_nodes;
  for (const auto& node : skipped) {
    if (run_->state().disregarded_nodes.contains(node)) {
      continue;
    }
    auto left = left_behind(run_->state(), context.snapshot, node);
    if (!left && may_still_arrive(node, context)) {
      left = LeftBehind{.what = "may still begin the requested work"};
    }
    if (!left) {
      if (!unseen_step(run_->state(), node).empty()) {
        run_->record(events::kSkippedNodeIdle, {{"node", node}});
      }
      continue;
    }
    if (planner::waits_for_work_elsewhere(step)) {
      planner::GateState state;
      state.gate = planner::kNoOtherWork;
      state.code = left->seen ? "skipped-node-works" : "skipped-node-unseen";
      state.node = node;
      state.reason = fmt::format("it {}; {}", left->what, how_to_disregard(run_->state(), node));
      state.value = left->what;
      state.limit = "none";
      closed.add(state);
    }
  }
}

/// The newest election is one that a step of this run asked for: the leader it brought was seen to
/// hold, or `step` itself asks again.
bool StepGates::is_own_election(const planner::Step& step,
                                const planner::ClusterSnapshot& snapshot) const {
  if (step.cost.leader_move && run_->state().steps.at(step.id).attempt > 0) {
    return true;
  }
  const auto* leader = snapshot.leader();
  if (leader == nullptr) {
    return false;
  }
  for (const auto& stage : run_->state().plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& each : group) {
        const auto& state = run_->state().steps.at(each.id);
        if (each.cost.leader_move && state.status == StepStatus::kDone &&
            state.result->value("epoch", -1) == leader->epoch_number) {
          return true;
        }
      }
    }
  }
  return false;
}

ClosedGates StepGates::closed(const planner::Stage& stage, const planner::Step& step,
                              const StepContext& context) {
  ClosedGates closed;
  const bool may_defer = !stage.atomic && run_->state().stages.at(stage.id).deferrals == 0 &&
                         &step == &stage.groups.front().front();
  const auto threads = steps::int_parameter(step, "threads", 1);
  for (auto gate : step.gates) {
    if (is_mutated(gate.name, "-ignored") ||
        (gate.name == planner::kMaintenanceWindow && run_->must_finish(stage))) {
      continue;
    }
    if (gate.name == planner::kLeaderSettled && is_own_election(step, context.snapshot)) {
      gate.limit = std::min(gate.limit, context.policy.limits.own_move_settle_ms());
    }
    for (const auto& state :
         run_->live().gates.evaluate(run_->state(), step, gate, context.snapshot, threads)) {
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
        run_->alert_once(
            step.id, "not-leader",
            fmt::format("{} waits: {} leads the cluster{}; move the leadership by hand, or leave "
                        "the node out with `verger run skip`",
                        step.id, step.node,
                        run_->state().stages.at(stage.id).deferrals > 0
                            ? ", and its turn was put off once"
                            : ""));
      }
      closed.add(state);
    }
  }
  add_left_behind(step, context, closed);
  if (closed.reason.empty()) {
    planner::GateState hours;
    hours.gate = planner::kMaintenanceWindow;
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

void StepGates::track(const planner::Step& step, const std::string& reason, const json& gates) {
  const auto now = run_->parts().network.clock.now();
  const auto& limits = run_->state().plan->policy.limits;
  auto known = std::exchange(run_->live().closed_since[step.id], {});
  auto& closed = run_->live().closed_since[step.id];
  std::vector<std::string> late;  // what has been closed for too long
  std::chrono::milliseconds shortest{};
  const auto track = [&](const std::string& gate, const std::string& node, const std::string& why,
                         std::chrono::milliseconds age) {
    const auto what = fmt::format("{}:{}", gate, node);
    const auto before = known.find(what);
    // Before this controller's start there may have been another.
    const auto since = before == known.end() ? run_->monotonic() - age : before->second;
    closed[what] = since;
    const std::chrono::milliseconds limit(planner::alert_after_ms(gate, limits));
    if (run_->monotonic() - since >= limit) {
      shortest = late.empty() ? limit : std::min(shortest, limit);
      late.push_back(fmt::format("{}{}{}", node, node.empty() ? "" : ": ", why));
    }
  };
  for (const auto& gate : gates) {
    const auto name = gate.value("gate", std::string());
    if (name != planner::kMaintenanceWindow) {
      track(name, gate.value("node", std::string()), gate.value("reason", std::string()),
            closed_for(gate, now));
    }
  }
  if (gates.empty()) {
    track("", "", reason, run_->in_state(step, now));
  }
  if (late.empty()) {
    run_->clear_alert(step.id + "/gate");
  } else {
    run_->alert_once(step.id, "gate",
                     fmt::format("{} has waited for {}: {}; `verger run skip` leaves the node out",
                                 step.id, length_text(shortest), fmt::join(late, "; ")));
  }
}

void StepGates::track_fit(const planner::Step& step, const ClosedGates& closed) {
  track(step, closed.reason, closed.gates);
  const auto& since = run_->state_of(step).does_not_fit_since;
  if (closed.fit.problem.empty() || !since) {
    return;
  }
  const auto waited = run_->parts().network.clock.now().value() - since->value();
  const auto limit = planner::alert_after_ms("does-not-fit", run_->state().plan->policy.limits);
  if (closed.fit.never || waited / kTicksPerMillisecond >= limit) {
    run_->alert_once(
        step.id, "fit",
        fmt::format("{} does not fit into its hours: {}; `verger run skip` leaves the node "
                    "out",
                    step.id, closed.fit.problem));
  }
}

}  // namespace verger::controller::detail
