#include <algorithm>

#include <nlohmann/json.hpp>

#include "controller/executor/run_state.h"
#include "engine/base/clock.h"

// A run's state as others see it: the names of its values, and its JSON. How events change it is in
// run_state.cpp.
namespace verger::controller {

using nlohmann::json;

std::string_view to_string(RunStatus status) {
  switch (status) {
    case RunStatus::kPlanned:
      return "planned";
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kPausing:
      return "pausing";
    case RunStatus::kPaused:
      return "paused";
    case RunStatus::kWaiting:
      return "waiting";
    case RunStatus::kCancelling:
      return "cancelling";
    case RunStatus::kDone:
      return "done";
    case RunStatus::kFailed:
      return "failed";
    case RunStatus::kCancelled:
      return "cancelled";
  }
  return "";
}

std::string_view to_string(StepStatus status) {
  switch (status) {
    case StepStatus::kPending:
      return "pending";
    case StepStatus::kWaiting:
      return "waiting";
    case StepStatus::kActing:
      return "acting";
    case StepStatus::kUnknown:
      return "unknown";
    case StepStatus::kDone:
      return "done";
    case StepStatus::kFailed:
      return "failed";
    case StepStatus::kSkipped:
      return "skipped";
    case StepStatus::kUndone:
      return "undone";
  }
  return "";
}

std::string_view to_string(PauseMode mode) {
  switch (mode) {
    case PauseMode::kPolicy:
      return "policy";
    case PauseMode::kDrain:
      return "drain";
    case PauseMode::kNow:
      return "now";
  }
  return "";
}

std::optional<PauseMode> parse_pause_mode(std::string_view text) {
  for (const auto mode : {PauseMode::kPolicy, PauseMode::kDrain, PauseMode::kNow}) {
    if (text == to_string(mode)) {
      return mode;
    }
  }
  return std::nullopt;
}

std::string_view to_string(StageStatus status) {
  switch (status) {
    case StageStatus::kPending:
      return "pending";
    case StageStatus::kRunning:
      return "running";
    case StageStatus::kDone:
      return "done";
    case StageStatus::kFailed:
      return "failed";
    case StageStatus::kUndoing:
      return "undoing";
    case StageStatus::kUndone:
      return "undone";
  }
  return "";
}

json to_json(const RunState& state) {
  const auto time = [](const std::optional<Ticks>& at) {
    return at ? json(format_ticks(*at)) : json();
  };
  const auto inner = [](const std::string& text) { return json::parse(text, nullptr, false); };
  auto stages = json::array();
  for (const auto& stage : state.plan->stages) {
    const auto& seen = state.stages.at(stage.id);
    auto steps = json::array();
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto& each = state.steps.at(step.id);
        steps.push_back({{"id", step.id},
                         {"kind", step.kind},
                         {"node", step.node},
                         {"state", to_string(each.status)},
                         {"reason", each.reason},
                         {"gates", inner(each.gates)},
                         {"outcomes", inner(each.outcomes)},
                         {"attempt", each.attempt},
                         {"operation", each.operation},
                         {"progress", inner(each.progress)},
                         {"result", inner(each.result)},
                         {"since", time(each.since)},
                         {"started", time(each.started)},
                         {"ended", time(each.ended)}});
      }
    }
    stages.push_back({{"id", stage.id},
                      {"title", stage.title},
                      {"state", to_string(seen.status)},
                      {"contingency", !stage.if_put_off.empty()},
                      {"putOff", seen.put_off},
                      {"started", time(seen.started)},
                      {"deadlineMs", stage.deadline_ms},
                      {"steps", std::move(steps)}});
  }
  auto moves = json::array();
  for (const auto& move : state.moves) {
    moves.push_back({{"from", move.from},
                     {"to", move.to},
                     {"planned", move.planned},
                     {"at", format_ticks(move.at)}});
  }
  auto values = json::object();
  for (const auto& [name, value] : state.values) {
    values[name] = inner(value);
  }
  return {{"id", state.id},
          {"cluster", state.cluster},
          {"plan", state.plan->hash},
          {"startedBy", state.started_by},
          {"state", to_string(state.status)},
          {"reason", state.reason},
          {"order", state.order},
          {"stages", std::move(stages)},
          {"values", std::move(values)},
          {"skippedNodes", state.skipped_nodes},
          {"leader", state.leader},
          {"leaderMoves", std::move(moves)},
          {"plannedLeaderMoves", state.planned_moves()},
          {"alerts", state.alerts},
          {"revision", state.revision.value()},
          {"startedAt", format_ticks(state.started_at)},
          {"endedAt", time(state.ended_at)}};
}

}  // namespace verger::controller
