#include "engine/scavenge/scavenge_run.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/assert.h"
#include "engine/streams/find_scavenge_point.h"

namespace verger::scavenge {

Result<std::unique_ptr<ScavengeRun>> ScavengeRun::open(streams::Database& database,
                                                       const Outside& outside,
                                                       const StateOptions& state) {
  const auto& index = database.stream_index();
  VERGER_TRY(auto opened,
             ScavengeState::open(outside.files, index.directory(), index.options().hash, state));
  VERGER_TRY(auto checkpoint, opened->checkpoint());
  return std::unique_ptr<ScavengeRun>(
      new ScavengeRun(database, outside, std::move(opened), std::move(checkpoint)));
}

ScavengeRun::ScavengeRun(streams::Database& database, const Outside& outside,
                         std::unique_ptr<ScavengeState> state, std::optional<Checkpoint> checkpoint)
    : database_(database),
      outside_(outside),
      state_(std::move(state)),
      checkpoint_(std::move(checkpoint)) {}

Result<StartDecision> ScavengeRun::find_start(bool sync_only) const {
  return scavenge::find_start(checkpoint_, database_, sync_only);
}

Result<StartDecision> ScavengeRun::find_start_at(EventNumber number) const {
  VERGER_TRY(const auto points, streams::scavenge_points(database_));
  VERGER_TRY(const auto wanted, streams::find_scavenge_point(points, number.value()));
  return decide_start(checkpoint_, wanted, /*sync_only=*/true);
}

ScavengeJob& ScavengeRun::begin(const ScavengePoint& point, ScavengeOptions options,
                                ScavengeEvents& events, std::unique_ptr<ParallelRunner> runner) {
  VERGER_ASSERT(state_ != nullptr);
  runner_ = std::move(runner);
  job_ = std::make_unique<ScavengeJob>(
      ScavengeParts{database_.transaction_log(), database_.stream_index(), outside_.files,
                    outside_.clock, outside_.random, outside_.log},
      std::move(state_), point, options, events, runner_ ? *runner_ : inline_runner());
  return *job_;
}

}  // namespace verger::scavenge
