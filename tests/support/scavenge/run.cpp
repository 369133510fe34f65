#include "tests/support/scavenge/run.h"

#include "engine/base/random.h"

namespace verger::test {
namespace {

ManualClock& test_clock() {
  static thread_local ManualClock clock;
  return clock;
}

}  // namespace

streams::DatabaseOptions options_of(const ScavengeRun& run, log::Access access) {
  streams::DatabaseOptions options;
  options.log.access = access;
  options.log.chunk_size = run.chunk_size;
  options.log.assume_stopped = true;
  options.index.read_only = access == log::Access::kReadOnly;
  options.index.max_mem_table_size = run.max_mem_table_size;
  options.index.stream_existence_filter_size = 10'000;
  options.index.cache_depth = 8;
  options.index.hash = run.hash;
  return options;
}

Result<std::unique_ptr<streams::Database>> open_database(FileSystem& files, const Path& directory,
                                                         const ScavengeRun& run,
                                                         log::Access access) {
  static thread_local SeededRandom random(7);
  return streams::Database::open(files, directory, options_of(run, access), /*commit_all=*/true,
                                 test_clock(), random, null_log());
}

Result<ScavengeRunResult> run_scavenge(FileSystem& files, const Path& directory,
                                       const ScavengeRun& run) {
  VERGER_TRY(const auto database, open_database(files, directory, run, log::Access::kWrite));
  if (run.committed) {
    database->transaction_log().set_chaser(*run.committed);
  }
  VERGER_TRY(auto state, scavenge::ScavengeState::open(files, directory / "index", run.hash,
                                                       run.options.state));
  auto point = run.point;
  if (!point) {
    VERGER_TRY(const auto checkpoint, state->checkpoint());
    VERGER_TRY(const auto decision,
               scavenge::find_start(checkpoint, *database, /*sync_only=*/true));
    if (decision.kind == scavenge::StartKind::kNothing) {
      return ScavengeRunResult{.nothing_to_do = true, .progress = {}};
    }
    point = decision.point;
  }
  SeededRandom random(run.seed);
  scavenge::ScavengeEvents no_events;
  scavenge::ScavengeJob job(
      scavenge::ScavengeParts{database->transaction_log(), database->stream_index(), files,
                              test_clock(), random, null_log()},
      std::move(state), *point, run.options, run.events == nullptr ? no_events : *run.events,
      run.runner == nullptr ? scavenge::inline_runner() : *run.runner);
  for (;;) {
    VERGER_TRY(const auto outcome, job.step({.units = run.step_units}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return ScavengeRunResult{.nothing_to_do = false, .progress = job.progress()};
    }
    if (run.after_step && !run.after_step(job)) {
      job.request_stop();
    }
  }
}

}  // namespace verger::test
