#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "controller/cluster/registry.h"
#include "controller/executor/executor.h"
#include "controller/executor/gate_board.h"
#include "controller/executor/run_state.h"
#include "planner/plan.h"
#include "planner/snapshot.h"

/// The shapes of docs/formats/controller-api.md.
namespace verger::controller::views {

nlohmann::json cluster(const ClusterConfig& config);
nlohmann::json snapshot(const planner::ClusterSnapshot& snapshot);
nlohmann::json plan(const StoredPlan& plan);
/// With `now` the times of steps under way are up to then, else up to their last event.
/// How far an acting step is; null where it does not tell.
nlohmann::json step_progress(const StepState& state);
nlohmann::json run(const RunState& run, std::optional<Ticks> now = std::nullopt);
/// Where a step's time went, in seconds.
nlohmann::json timeline(StepTime time);
/// The same of a run that has ended, the operation's own work apart from everything else; what ran
/// side by side counts once.
nlohmann::json timeline(const RunState& run);
/// What the run showed, from what its steps saw; null before it has ended.
nlohmann::json report(const RunState& run);
/// How long all of a plan takes that is not conditional: {"min", "max"}; null where the
/// operation's own work has no expectation.
nlohmann::json expected_seconds(const planner::Plan& plan);
/// When a run will have ended: {"earliest", "latest", "overdue"} from the plan's expected durations
/// (this cluster's history, or an estimate the first time) and what is under way. Of a run that
/// waits or is paused also {"resumes_at", "seconds_left": {"min", "max"}}, where it is known that
/// it `resumes`. Null where a step has no expectation, the run has ended, or stands still for an
/// unknown time.
nlohmann::json expected_end(const RunState& run, Ticks now, std::optional<Ticks> resumes);
/// The gates that a step of `run` waits for, with the time at which an alert fires. Closed windows
/// raise none, nor does a run that looks at no gates: one that is paused, or has ended.
nlohmann::json waiting_for(const StepState& state, const RunState& run);
/// All gates of the steps that wait or are on `board`, open ones with value and limit too.
nlohmann::json gates(const RunState& run, const GateBoard& board);
nlohmann::json refusal(const planner::Refusal& refusal);

}  // namespace verger::controller::views
