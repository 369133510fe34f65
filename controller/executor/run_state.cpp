#include "controller/executor/run_state.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/run_events.h"
#include "controller/executor/events.h"
#include "controller/executor/plan_json.h"
#include "engine/base/clock.h"

namespace verger::controller {
namespace {

using nlohmann::json;

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
    if (!detail::apply_to_run(state, event, data) && !detail::apply_to_stage(state, event, data) &&
        !detail::apply_to_step(state, event, data)) {
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

bool was_interrupted(const StepState& step) {
  const auto outcomes = json::parse(step.outcomes, nullptr, false);
  // Both are refusals to begin. "lock_held" is none: the lock may be lost between two switches.
  return std::ranges::any_of(outcomes, [](const json& attempt) {
    const auto outcome = attempt.value("outcome", std::string());
    return outcome != "gate_closed" && outcome != "chunk_lock_held";
  });
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
