#include <algorithm>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/run_events.h"
#include "controller/executor/events.h"

namespace verger::controller::detail {
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
void defer(RunState& state, const std::string& id, Ticks deferred) {
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
  for (const auto& group : find_stage(state, id)->groups) {
    for (const auto& step : group) {
      end_waiting(state, step.id, deferred);
    }
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
      step.result = {};
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

}  // namespace

bool apply_to_stage(RunState& state, const JournalEvent& event, const nlohmann::json& data) {
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
    defer(state, id, event.at);
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

}  // namespace verger::controller::detail
