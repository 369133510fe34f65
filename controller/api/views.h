#pragma once

#include <nlohmann/json_fwd.hpp>

#include "controller/cluster/registry.h"
#include "controller/executor/executor.h"
#include "controller/executor/run_state.h"
#include "planner/plan.h"
#include "planner/snapshot.h"

/// The shapes of docs/formats/controller-api.md.
namespace verger::controller::views {

nlohmann::json cluster(const ClusterConfig& config);
nlohmann::json snapshot(const planner::ClusterSnapshot& snapshot);
nlohmann::json plan(const StoredPlan& plan);
nlohmann::json run(const RunState& run);
/// What the run showed, from what its steps saw; null before it has ended.
nlohmann::json report(const RunState& run);
/// When a run will have ended: {"earliest", "latest"} from the plan's expected durations (this
/// cluster's history, or an estimate the first time) and what is under way; null where a step has
/// no expectation, or the run has ended, is paused or waits.
nlohmann::json expected_end(const RunState& run, Ticks now);
nlohmann::json refusal(const planner::Refusal& refusal);

}  // namespace verger::controller::views
