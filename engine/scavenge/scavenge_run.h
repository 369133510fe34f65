#pragma once

#include <memory>
#include <optional>

#include "engine/scavenge/parallel_runner.h"
#include "engine/scavenge/scavenge_job.h"
#include "engine/streams/event_store.h"

namespace verger::scavenge {

/// One scavenge of a database that is open for writing, for every caller: it opens the state,
/// says where that stands and what is to be done, and makes the job. What the job is stepped by,
/// and how a point comes into the log, is the caller's. One thread.
class ScavengeRun {
 public:
  /// What comes from outside; it outlives the run, as the database does.
  struct Outside {
    FileSystem& files;
    Clock& clock;
    Random& random;
    Log& log;
  };

  /// Opens the state beside the database's index, and creates it where there is none. Errors: those
  /// of ScavengeState::open.
  static Result<std::unique_ptr<ScavengeRun>> open(streams::Database& database,
                                                   const Outside& outside,
                                                   const StateOptions& state = {});

  /// Where the last scavenge of these files ended, or was left.
  [[nodiscard]] const std::optional<Checkpoint>& checkpoint() const { return checkpoint_; }
  /// It was left: it is finished before any other begins.
  [[nodiscard]] bool is_unfinished() const {
    return checkpoint_ && checkpoint_->stage != Stage::kDone;
  }
  /// With the last point in the log. Errors: as streams::latest_scavenge_point.
  [[nodiscard]] Result<StartDecision> find_start(bool sync_only) const;
  /// With the point of this number. Error: kNotFound, where the log does not have it.
  [[nodiscard]] Result<StartDecision> find_start_at(EventNumber number) const;

  /// Once, before job() is called. `options.state` is as at open(). `runner`: null: in the thread
  /// that steps the job. `events` outlives the run.
  ScavengeJob& begin(const ScavengePoint& point, ScavengeOptions options, ScavengeEvents& events,
                     std::unique_ptr<ParallelRunner> runner);
  /// Null before begin().
  [[nodiscard]] ScavengeJob* job() const { return job_.get(); }

 private:
  ScavengeRun(streams::Database& database, const Outside& outside,
              std::unique_ptr<ScavengeState> state, std::optional<Checkpoint> checkpoint);

  streams::Database& database_;
  Outside outside_;
  std::unique_ptr<ScavengeState> state_;  ///< until begin()
  std::optional<Checkpoint> checkpoint_;
  std::unique_ptr<ParallelRunner> runner_;
  std::unique_ptr<ScavengeJob> job_;
};

}  // namespace verger::scavenge
