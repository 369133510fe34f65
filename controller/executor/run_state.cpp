#include "controller/executor/run_state.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/gate_board.h"
#include "controller/executor/plan_json.h"
#include "controller/journal/member_names.h"
#include "engine/base/clock.h"
#include "engine/base/json_number.h"

namespace verger::controller {
namespace {

using nlohmann::json;

const planner::Stage* find_stage(const RunState& state, std::string_view id) {
  const auto found = std::ranges::find(state.plan->stages, id, &planner::Stage::id);
  return found == state.plan->stages.end() ? nullptr : &*found;
}

bool works_on_nodes(const planner::Stage& stage) {
  return !stage.closing && std::ranges::any_of(stage.groups, [](const auto& group) {
    return std::ranges::any_of(group, [](const auto& step) { return !step.node.empty(); });
  });
}

/// The second turn comes after all stages that work on nodes, its contingency right before it.
void defer(RunState& state, const std::string& id) {
  const auto at = std::ranges::find(state.order, id);
  auto next = at == state.order.end() ? state.order.begin() : state.order.erase(at);
  auto place = next;
  for (auto each = next; each != state.order.end(); ++each) {
    const auto* stage = find_stage(state, *each);
    if (stage != nullptr && works_on_nodes(*stage)) {
      place = each + 1;
    }
  }
  std::vector<std::string> later;
  for (const auto& stage : state.plan->stages) {
    if (stage.if_deferred == id && std::ranges::find(state.order, stage.id) == state.order.end()) {
      later.push_back(stage.id);
    }
  }
  later.push_back(id);
  state.order.insert(place, later.begin(), later.end());
  auto& stage = state.stages[id];
  stage.status = StageStatus::kPending;
  stage.started.reset();
  ++stage.deferrals;
}

/// When the step was last heard of.
Ticks last_news(const StepState& step) {
  const auto since = step.since.value_or(Ticks());
  return std::max(since, step.phase.at);
}

void set_status(StepState& step, StepStatus status, Ticks at) {
  if (step.status == StepStatus::kActing && status != StepStatus::kActing && step.since) {
    // Time in which it could not be seen does not count as work.
    const auto until = status == StepStatus::kUnknown ? last_news(step) : at;
    step.active_ms += (until.value() - step.since->value()) / kTicksPerMillisecond;
  }
  if (step.status != status) {
    step.status = status;
    step.since = at;
  }
}

void forget_undo(RunState& state, const std::string& id) {
  for (const auto& group : find_stage(state, id)->groups) {
    for (const auto& step : group) {
      state.steps.at(step.id).undo_end.reset();
    }
  }
}

/// All of the stage is to be done again. Attempts keep their numbers, since a permit for one is
/// none for another; those that had been seen done do not count for the limit.
void roll_back(RunState& state, const std::string& id, Ticks at) {
  const auto* plan = find_stage(state, id);
  for (const auto& group : plan->groups) {
    for (const auto& planned : group) {
      auto& step = state.steps.at(planned.id);
      if (step.status == StepStatus::kSkipped) {
        continue;
      }
      if (step.status == StepStatus::kDone || step.status == StepStatus::kUndone) {
        step.attempts_before_rollback = step.attempt;
        step.active_ms = 0;
      }
      set_status(step, StepStatus::kPending, at);
      step.operation.clear();
      step.result = "{}";
      step.acted = false;
      step.interrupting = false;
      step.undoing = false;
      step.ended.reset();
    }
  }
  auto& stage = state.stages.at(id);
  stage.status = StageStatus::kPending;
  stage.started.reset();
  stage.rolling_back = false;
}

std::string merged(const std::string& base, const json& more) {
  auto value = json::parse(base, nullptr, false);
  if (!value.is_object()) {
    value = json::object();
  }
  if (more.is_object()) {
    value.update(more);
  }
  return value.dump();
}

void take_phase(const json& progress, Ticks at, PhaseSeen& seen) {
  const auto phase = progress.is_object() ? progress.value("phase", std::string()) : std::string();
  // Journals of former versions have chunks alone.
  const auto done = progress.is_object()
                        ? json_integer_or<std::int64_t>(
                              progress, progress.contains("done") ? "done" : "chunks_done", -1)
                        : std::int64_t{-1};
  if (phase != seen.phase || done < seen.done) {
    seen = {.phase = phase, .first_done = done, .done = done, .since = at, .at = at};
  }
  seen.done = done;
  seen.at = at;
}

std::string with_outcome(const StepState& step, const json& data, Ticks at) {
  auto list = json::parse(step.outcomes, nullptr, false);
  if (const auto outcome = data.value("outcome", std::string()); !outcome.empty()) {
    list.push_back({{"attempt", step.attempt},
                    {"outcome", outcome},
                    {"reason", data.value("reason", std::string())},
                    {"at", format_ticks(at)}});
  }
  return list.dump();
}

/// A gate that was closed before keeps its "since".
std::string closed_gates(const std::string& before, json now, Ticks at) {
  const auto known = json::parse(before, nullptr, false);
  for (auto& gate : now) {
    gate["since"] = format_ticks(at);
    for (const auto& old : known) {
      if (old.at("gate") == gate.at("gate") && old.at("node") == gate.at("node")) {
        gate["since"] = old.at("since");
      }
    }
  }
  return now.dump();
}

template <class Which>
void clear_alerts(RunState& state, Ticks at, const Which& which) {
  for (auto& alert : state.alerts) {
    if (!alert.cleared_at && which(alert)) {
      alert.cleared_at = at;
    }
  }
}

bool is_of_gate(const RunAlert& alert) {
  const auto what = std::string_view(alert.key).substr(alert.key.find('/') + 1);
  return what.starts_with("gate") || what == "not-leader" || what == "fit";
}

/// What is left to do by hand, also once the run has ended.
bool outlives_run(const RunAlert& alert) {
  return alert.key.ends_with("/undo") || alert.key.ends_with("/differences") ||
         alert.key.contains("/left-");
}

bool has_gate_code(const json& gates, std::string_view code) {
  return std::ranges::any_of(
      gates, [code](const json& gate) { return gate.value("code", std::string()) == code; });
}

/// What was prepared and waited for before a pause is looked at anew after it.
void end_pause(RunState& state, Ticks at) {
  if (!state.paused_since) {
    return;
  }
  state.paused_ms +=
      std::max<std::int64_t>(at.value() - state.paused_since->value(), 0) / kTicksPerMillisecond;
  for (auto& [id, step] : state.steps) {
    if (step.time.counted && !step.ended) {
      count_time(step.time, part_of(step), *state.paused_since);
      step.time.counted = at;
    }
  }
  state.last_step_end = at;
  state.paused_since.reset();
}

/// Events about the run as a whole; false: it is none of them.
bool apply_to_run(RunState& state, const JournalEvent& event, const json& data) {
  const std::string_view type = event.type;
  const auto reason = data.value("reason", std::string());
  if (type == events::kRunPausing) {
    state.status = RunStatus::kPausing;
    state.reason = reason;
    state.pause_mode =
        parse_pause_mode(data.value("mode", std::string())).value_or(PauseMode::kPolicy);
    state.paused_with_cluster = data.value("cluster", false);
  } else if (type == events::kRunPaused) {
    state.status = RunStatus::kPaused;
    state.paused_since = event.at;
  } else if (type == events::kRunResumed) {
    state.status = RunStatus::kRunning;
    state.reason.clear();
    clear_alerts(state, event.at, [](const auto& alert) { return alert.key == kResumeAlert; });
    state.ignores_hours = state.ignores_hours || data.value("ignore_hours", false);
    end_pause(state, event.at);
  } else if (type == events::kRunCancelling) {
    state.status = RunStatus::kCancelling;
    state.reason = reason;
  } else if (type == events::kRunEnded) {
    const auto ended = data.at("state").get<std::string>();
    state.status = RunStatus::kCancelled;
    for (const auto status :
         {RunStatus::kDone, RunStatus::kDoneWithDifferences, RunStatus::kFailed}) {
      state.status = ended == to_string(status) ? status : state.status;
    }
    state.reason = reason;
    state.ended_at = event.at;
    clear_alerts(state, event.at, [](const auto& alert) { return !outlives_run(alert); });
  } else if (type == events::kRunValue) {
    state.values[data.at("name").get<std::string>()] = in_snake_case(data.at("value")).dump();
  } else if (type == events::kNodeSkipped) {
    const auto node = data.at("node").get<std::string>();
    state.skipped_nodes.insert(node);
    if (data.value("force", false)) {
      state.disregarded_nodes.insert(node);
    }
  } else if (type == events::kSkippedNodeIdle) {
    for (const auto& stage : state.plan->stages) {
      for (const auto& group : stage.groups) {
        for (const auto& step : group) {
          if (step.node == data.at("node").get<std::string>()) {
            state.steps.at(step.id).end_unseen = false;
          }
        }
      }
    }
  } else if (type == events::kLeaderSeen) {
    state.leader = data.at("node").get<std::string>();
  } else if (type == events::kLeaderMoved) {
    LeaderMove move{data.at("from").get<std::string>(), data.at("to").get<std::string>(),
                    data.at("planned").get<bool>(), event.at};
    state.leader = move.to;
    state.moves.push_back(std::move(move));
  } else if (type == events::kAlert) {
    state.alerts.push_back({.key = data.value("key", std::string()),
                            .step = data.value("step", std::string()),
                            .reason = reason,
                            .at = event.at,
                            .cleared_at = {}});
  } else if (type == events::kAlertCleared) {
    clear_alerts(state, event.at, [key = data.at("key").get<std::string>()](const auto& alert) {
      return alert.key == key;
    });
  } else {
    return false;
  }
  return true;
}

bool apply_to_stage(RunState& state, const JournalEvent& event, const json& data) {
  const std::string_view type = event.type;
  if (type != events::kStageStarted && type != events::kStageDeferred &&
      type != events::kStageEnded && type != events::kUndoStarted &&
      type != events::kStageRolledBack) {
    return false;
  }
  const auto id = data.at("stage").get<std::string>();
  auto& stage = state.stages.at(id);
  if (type == events::kStageStarted) {
    stage.status = StageStatus::kRunning;
    stage.started = event.at;
  } else if (type == events::kStageDeferred) {
    defer(state, id);
  } else if (type == events::kUndoStarted) {
    stage.status = StageStatus::kUndoing;
    stage.started = event.at;
    stage.rolling_back = data.value("why", std::string("failure")) != "failure";
    forget_undo(state, id);
  } else if (type == events::kStageRolledBack) {
    roll_back(state, id, event.at);
  } else {
    const auto ended = data.at("state").get<std::string>();
    stage.status = ended == "done"     ? StageStatus::kDone
                   : ended == "undone" ? StageStatus::kUndone
                                       : StageStatus::kFailed;
    std::erase(state.order, id);
  }
  return true;
}

/// What steps noted has the names of today also where version 0.1 wrote it.
bool apply_to_step(RunState& state, const JournalEvent& event, const json& data) {
  const auto found = state.steps.find(data.at("step").get<std::string>());
  if (found == state.steps.end()) {
    return false;
  }
  auto& step = found->second;
  const std::string_view type = event.type;
  const auto reason = data.value("reason", std::string());
  const auto clear_own = [&](const auto& which) {
    clear_alerts(state, event.at,
                 [&](const auto& alert) { return alert.step == found->first && which(alert); });
  };
  if (!step.ended) {  // its undo follows the work of other steps, whose time is theirs
    step.time.counted = step.time.counted.value_or(state.last_step_end.value_or(state.started_at));
    count_time(step.time, part_of(step), event.at);
  }
  if (type == events::kStepWaiting) {
    set_status(step, StepStatus::kWaiting, event.at);
    step.reason = reason;
    step.gates = closed_gates(
        step.gates, with_current_gate_names(data.value("gates", json::array())), event.at);
    if (has_gate_code(data.value("gates", json::array()), "does-not-fit")) {
      step.does_not_fit_since = step.does_not_fit_since.value_or(event.at);
    }
  } else if (type == events::kStepIntended) {
    set_status(step, StepStatus::kActing, event.at);
    step.gates = "[]";
    step.since = event.at;
    step.attempt = data.at("attempt").get<std::int32_t>();
    step.operation = data.at("operation").get<std::string>();
    step.memo = in_snake_case(data.at("memo")).dump();
    step.not_seen = with_current_gate_names(data.value("not_seen", json::array())).dump();
    step.acted = false;
    step.interrupting = false;
    step.reason.clear();
    step.started = step.started.value_or(event.at);
    step.does_not_fit_since.reset();
    step.undo_end.reset();
    clear_own(is_of_gate);
  } else if (type == events::kStepActed) {
    step.acted = data.at("answer").get<std::string>() == "accepted";
    step.memo = merged(step.memo, in_snake_case(data.value("memo", json::object())));
    if (!step.acted) {
      set_status(step, StepStatus::kUnknown, event.at);
      step.reason = reason;
    }
  } else if (type == events::kStepUnknown) {
    set_status(step, StepStatus::kUnknown, event.at);
    step.reason = reason;
  } else if (type == events::kStepProgress) {
    set_status(step, StepStatus::kActing, event.at);
    const auto progress = in_snake_case(data.at("progress"));
    step.progress = progress.dump();
    take_phase(progress, event.at, step.phase);
    step.active_ms -= data.value("unwatched_ms", std::int64_t{0});
    step.memo = merged(step.memo, in_snake_case(data.value("memo", json::object())));
    step.reason.clear();
  } else if (type == events::kStepRetry) {
    step.outcomes = with_outcome(step, data, event.at);
    set_status(step, StepStatus::kPending, event.at);
    step.attempt -= data.value("counts", true) ? 0 : 1;
    step.interrupting = false;
    step.reason = reason;
  } else if (type == events::kStepInterrupting) {
    step.interrupting = true;
  } else if (type == events::kStepInterrupted) {
    step.outcomes = with_outcome(step, data, event.at);
    set_status(step, StepStatus::kPending, event.at);
    step.attempt -= 1;
    step.interrupting = false;
    step.reason = reason;
  } else if (type == events::kStepDone) {
    set_status(step, StepStatus::kDone, event.at);
    step.result = in_snake_case(data.at("result")).dump();
    step.reason.clear();
    step.ended = event.at;
    clear_own([](const auto&) { return true; });
  } else if (type == events::kStepFailed) {
    set_status(step, StepStatus::kFailed, event.at);
    step.reason = reason;
    step.ended = event.at;
    clear_own([](const auto& alert) { return !outlives_run(alert); });
  } else if (type == events::kStepSkipped) {
    step.end_unseen = step.status == StepStatus::kActing || step.status == StepStatus::kUnknown;
    set_status(step, StepStatus::kSkipped, event.at);
    step.reason = reason;
    step.ended = event.at;
    clear_own([](const auto& alert) { return !outlives_run(alert); });
  } else if (type == events::kUndoIntended) {
    step.undoing = true;
    step.undo_operation = data.at("operation").get<std::string>();
    step.undo_attempt = data.at("attempt").get<std::int32_t>();
  } else if (type == events::kStepUndone) {
    set_status(step, StepStatus::kUndone, event.at);
    step.undoing = false;
    step.end_unseen = false;
    step.undo_end = UndoEnd{.undone = true, .reason = {}, .command = {}, .at = event.at};
    clear_own([](const auto&) { return true; });
  } else if (type == events::kUndoFailed) {
    step.undoing = false;
    step.reason = reason;
    step.undo_end = UndoEnd{.undone = false,
                            .reason = reason,
                            .command = data.value("command", std::string()),
                            .at = event.at};
  } else {
    return false;
  }
  if (step.ended == event.at) {
    state.last_step_end = event.at;
  }
  return true;
}

/// "waiting" is what people see of a running run whose every open step waits.
void refresh_waiting(RunState& state) {
  if (state.status != RunStatus::kRunning && state.status != RunStatus::kWaiting) {
    return;
  }
  const StepState* waiting = nullptr;
  bool acting = false;
  for (const auto& [id, step] : state.steps) {
    acting = acting || step.status == StepStatus::kActing;
    if (step.status == StepStatus::kWaiting || step.status == StepStatus::kUnknown) {
      waiting = &step;
    }
  }
  const bool waits = waiting != nullptr && !acting;
  state.status = waits ? RunStatus::kWaiting : RunStatus::kRunning;
  state.reason = waits ? waiting->reason : "";
}

}  // namespace

bool RunState::has_open_alert(std::string_view key) const {
  return std::ranges::any_of(
      alerts, [key](const RunAlert& alert) { return !alert.cleared_at && alert.key == key; });
}

std::size_t RunState::open_alerts() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(alerts, [](const RunAlert& alert) { return !alert.cleared_at; }));
}

StepPart part_of(const StepState& step) {
  switch (step.status) {
    case StepStatus::kWaiting:
      return StepPart::kWaiting;
    case StepStatus::kActing:
      return step.acted ? StepPart::kObserving : StepPart::kActing;
    case StepStatus::kUnknown:
      return StepPart::kObserving;
    case StepStatus::kPending:
    case StepStatus::kDone:
    case StepStatus::kFailed:
    case StepStatus::kSkipped:
    case StepStatus::kUndone:
      break;
  }
  return StepPart::kPreparing;
}

std::int32_t RunState::planned_moves() const {
  return static_cast<std::int32_t>(std::ranges::count_if(moves, &LeaderMove::planned));
}

void begin(RunState& state, const JournalEvent& event, std::shared_ptr<const planner::Plan> plan,
           std::string by) {
  state.revision = event.revision;
  state.id = event.stream.substr(event.stream.find('/') + 1);
  state.cluster = plan->cluster;
  state.started_by = std::move(by);
  state.status = RunStatus::kRunning;
  state.started_at = event.at;
  for (const auto& stage : plan->stages) {
    state.stages[stage.id] = StageState{};
    if (stage.if_deferred.empty()) {
      state.order.push_back(stage.id);
    }
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        state.steps[step.id] = StepState{};
      }
    }
  }
  state.plan = std::move(plan);
}

Result<void> apply(RunState& state, const JournalEvent& event) {
  const auto data = json::parse(event.data, nullptr, false);
  if (!data.is_object()) {
    return Error{Errc::kCorruption, fmt::format("{}, event {} ({}): not a JSON object",
                                                event.stream, event.revision.value(), event.type)};
  }
  return apply(state, event, data);
}

Result<void> apply(RunState& state, const JournalEvent& event, const json& data) {
  try {
    if (event.type == events::kRunStarted) {
      VERGER_TRY(auto plan, parse_plan(data.at("plan")));
      begin(state, event, std::make_shared<const planner::Plan>(std::move(plan)),
            data.value("by", std::string()));
      return {};
    }
    state.revision = event.revision;
    if (!state.plan) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: {} before it started", event.stream, event.type)};
    }
    if (!apply_to_run(state, event, data) && !apply_to_stage(state, event, data) &&
        !apply_to_step(state, event, data)) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: unknown event {} ({})", event.stream, event.type, event.data)};
    }
    refresh_waiting(state);
    return {};
  } catch (const std::exception& error) {  // of the JSON library and map::at
    return Error{Errc::kCorruption, fmt::format("{}, event {} ({}): {}", event.stream,
                                                event.revision.value(), event.type, error.what())};
  }
}

std::optional<double> PhaseSeen::units_per_hour() const {
  const auto ticks = at.value() - since.value();
  if (first_done < 0 || done <= first_done || ticks <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(done - first_done) * 3600.0 * kTicksPerSecond /
         static_cast<double>(ticks);
}

}  // namespace verger::controller
