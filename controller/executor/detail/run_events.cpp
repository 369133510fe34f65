#include "controller/executor/detail/run_events.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/journal/member_names.h"
#include "engine/base/clock.h"

namespace verger::controller::detail {
namespace {

using nlohmann::json;

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

}  // namespace

bool outlives_run(const RunAlert& alert) {
  return alert.key.ends_with("/undo") || alert.key.ends_with("/differences") ||
         alert.key.contains("/left-");
}

bool apply_to_run(RunState& state, const JournalEvent& event, const nlohmann::json& data) {
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

}  // namespace verger::controller::detail
