#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/base/memory_file_system.h"
#include "engine/scavenge/scavenge_job.h"
#include "engine/streams/event_store.h"
#include "tests/support/manual_clock.h"

namespace verger::test {

/// How a test opens and scavenges a database.
struct ScavengeRun {
  std::int32_t chunk_size = 0;
  std::uint64_t max_mem_table_size = 1'000'000;
  index::HashFunction hash = &index::hash_stream;
  scavenge::ScavengeOptions options;
  /// nullopt: what decide_start says of a request with syncOnly.
  std::optional<streams::ScavengePoint> point;
  /// The rest of the log is not committed; nullopt: all of it is.
  std::optional<LogPosition> committed{};
  scavenge::ParallelRunner* runner = nullptr;
  scavenge::ScavengeEvents* events = nullptr;
  std::uint32_t step_units = 4096;
  std::uint64_t seed = 1;
  /// Called after each step; false requests a stop.
  std::function<bool(const scavenge::ScavengeJob&)> after_step;
};

struct ScavengeRunResult {
  bool nothing_to_do = false;
  scavenge::ScavengeProgress progress;
};

streams::DatabaseOptions options_of(const ScavengeRun& run, log::Access access);

/// Opens for writing with everything committed.
Result<std::unique_ptr<streams::Database>> open_database(FileSystem& files, const Path& directory,
                                                         const ScavengeRun& run,
                                                         log::Access access);

/// Opens the database, scavenges one point, closes it. Rests pass on a clock of its own.
Result<ScavengeRunResult> run_scavenge(FileSystem& files, const Path& directory,
                                       const ScavengeRun& run);

}  // namespace verger::test
