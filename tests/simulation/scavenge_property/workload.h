#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/memory_file_system.h"
#include "engine/scavenge/scavenge_job.h"
#include "tests/simulation/scavenge_property/model.h"
#include "tests/support/database/database_builder.h"

namespace verger::test {

/// What happened in workloads.
struct WorkloadCounts {
  int scavenges = 0;
  int crashes = 0;  ///< that took effect
  int stops = 0;
  int collisions = 0;
  int previews = 0;
  int groups_merged = 0;
  std::uint64_t chunks_executed = 0;
  std::uint64_t records_discarded = 0;
  std::uint64_t entries_discarded = 0;
};

/// One random life of a small database, all of it decided by the seed: writes, deletes and
/// metadata, then a scavenge that is stopped, crashed and resumed, then more of both. After each
/// scavenge log, index, chunk files and scavenging.db are what the model says, and readers see what
/// they saw before.
class Workload {
 public:
  Workload(std::uint64_t seed, WorkloadCounts& counts);
  ~Workload();
  /// Adds GoogleTest failures; throws when something cannot be written or read.
  void run();

 private:
  void write_something();
  void write_metadata(const std::string& stream);
  std::string metadata_text();
  /// Records that no server writes today: numbers out of order, repeated or with gaps, the old
  /// record version, prepares that a commit record commits, markers, tombstones of all kinds and
  /// events behind them, metadata of metastreams, epochs.
  void write_odd(const std::string& stream);
  /// Appends one record; at kNoPosition the first of its transaction.
  LogPosition append(const std::string& stream, std::uint16_t flags, std::int64_t number,
                     std::string_view data, LogPosition transaction = kNoPosition,
                     std::int32_t offset = 0);
  void reopen();
  /// Gives some chunks and index tables the forms of older servers.
  void age_files();
  void age_chunk(const Path& path);
  void age_table(const Path& path);
  /// A chunk before the point loses all of its records, as old scavenges could leave it. Nothing
  /// can be written to its streams afterwards.
  void empty_a_chunk(const streams::ScavengePoint& point);
  streams::ScavengePoint write_point();
  void scavenge(const streams::ScavengePoint& point);
  ModelInput input(const streams::ScavengePoint& point);
  /// What estimate and explain say is what the model says.
  void preview(const streams::ScavengePoint& point, const ModelInput& before,
               const ModelOutcome& expected);
  void compare(const ModelInput& before, const ModelOutcome& expected);
  /// Stops, crashes or finishes; true when the scavenge is done.
  bool attempt(const streams::ScavengePoint& point, bool undisturbed);
  Result<void> run_job(const streams::ScavengePoint& point, scavenge::ScavengeOptions options,
                       std::uint64_t stop_at_step);
  std::string readable(const streams::ScavengePoint& point);
  /// `verger-db verify` finds no damage.
  void verify();
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }

  WorkloadCounts& counts_;
  SeededRandom random_;
  MemoryFileSystem files_;
  const Path directory_ = "/db";
  BuilderOptions options_;
  bool unsafe_ = false;
  bool merge_ = true;
  bool zero_threshold_ = true;
  bool monotonic_ = true;  ///< the clock never goes back
  bool odd_ = false;       ///< write_odd() is used
  bool emptied_ = false;   ///< a chunk was
  std::unique_ptr<DatabaseBuilder> builder_;
  std::unique_ptr<ScavengeModel> model_;
  std::vector<std::string> names_;
  std::set<std::string> tombstoned_, soft_deleted_;
};

}  // namespace verger::test
