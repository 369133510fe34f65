#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/executor/run_state.h"
#include "controller/journal/journal.h"
#include "engine/base/clock.h"
#include "planner/make_plan.h"

// A run without all of its events: the summary that lists need, and the state at some revision,
// which the journal keeps as a snapshot of the run's stream. The JSON is ours alone and has a
// format number: a snapshot of another format counts as none.
namespace verger::controller {

/// What lists, metrics and later plans need of a run.
struct RunSummary {
  std::string id;
  std::string cluster;
  std::string operation;  ///< of its policy
  std::string plan;       ///< hash
  std::string started_by;
  RunStatus status = RunStatus::kPlanned;
  Ticks started_at;
  std::optional<Ticks> ended_at;
  std::vector<planner::PastDuration> durations;  ///< of its done steps
  std::map<std::string, std::string> kept;       ///< its values called so (kKeptValues): JSON texts
};

RunSummary summary_of(const RunState& run);
Snapshot snapshot_of(const RunState& run);

/// Errors: kUnsupported (another format), kCorruption.
Result<RunSummary> parse_summary(const Snapshot& snapshot);

/// The state of a run's stream as the journal has it: its snapshot and the events after that.
/// Errors: kCorruption (the stream is no run, or not one this program understands), the journal's.
Result<RunState> replay_run(Journal& journal, const std::string& stream);

}  // namespace verger::controller
