#pragma once

#include <nlohmann/json_fwd.hpp>

#include "controller/executor/run_state.h"
#include "controller/journal/journal.h"

// How the events of a run's stream change its state, by what they are about (../run_state.h,
// apply()). `data` is the event's, an object. False: the event is about something else. Members
// that are missing or of another type are exceptions of the JSON library.
namespace verger::controller::detail {

/// About the run as a whole, its nodes, leader and alerts.
bool apply_to_run(RunState& state, const JournalEvent& event, const nlohmann::json& data);
bool apply_to_stage(RunState& state, const JournalEvent& event, const nlohmann::json& data);
bool apply_to_step(RunState& state, const JournalEvent& event, const nlohmann::json& data);

/// Counts the time that the step was at work.
void set_status(StepState& step, StepStatus status, Ticks at);
/// The step's stage is to come again later: a step that waits does so no longer, and until its next
/// turn no time counts for it.
void end_waiting(RunState& state, const std::string& step, Ticks at);

/// An alert about what is left to do by hand, also once the run has ended.
bool outlives_run(const RunAlert& alert);

template <class Which>
void clear_alerts(RunState& state, Ticks at, const Which& which) {
  for (auto& alert : state.alerts) {
    if (!alert.cleared_at && which(alert)) {
      alert.cleared_at = at;
    }
  }
}

}  // namespace verger::controller::detail
