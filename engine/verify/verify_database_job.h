#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/scavenge/parallel_runner.h"
#include "engine/verify/findings.h"

namespace verger::verify {

struct VerifyDatabaseOptions {
  Path directory;
  Path index_directory;         ///< empty: "<directory>/index"
  std::int32_t chunk_size = 0;  ///< 0: what the first chunk's header says
  /// For sorting more events than are held in memory, and for a copy of scavenging.db; made when
  /// missing.
  Path scratch;
  std::uint64_t events_in_memory = 4'000'000;  ///< 24 bytes each, and as much again to sort them
  std::size_t lanes = 1;                       ///< files looked at side by side
};

struct VerifyTotals {
  std::uint64_t chunk_files = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t tables = 0;
  std::uint64_t entries = 0;
  std::uint64_t events = 0;
  std::uint64_t entries_without_record = 0;  ///< of records that were scavenged away
  std::uint64_t records_without_entry = 0;   ///< that a scavenge let go from the index only
};

struct VerifyProgress {
  enum class Stage : std::uint8_t {
    kChunks,  ///< in bytes: checksums of chunks and tables, and records
    kTables,  ///< their filters
    kLog,     ///< in bytes: the records once more, where one could not be read
    kIndex,   ///< in index entries: compared with the events
    kDone,
  };
  Stage stage = Stage::kChunks;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t bytes = 0;  ///< read so far in all stages together, for limits
};

/// Looks for damage in a database that nothing writes to: chunk files and checkpoints each on its
/// own, so that one damaged file does not hide the next (names, headers, footers, MD5, position
/// maps, framing, records); index tables and filters; the epochs; index and log against each other,
/// both ways; the scavenge state. Nothing is changed. Damage is collected, not an error.
class VerifyDatabaseJob final : public Job {
 public:
  /// All outlive it.
  VerifyDatabaseJob(FileSystem& files, VerifyDatabaseOptions options, Clock& clock, Random& random,
                    Log& log, scavenge::ParallelRunner& runner = scavenge::inline_runner());
  ~VerifyDatabaseJob() override;
  /// Errors: the directory cannot be read at all; kInvalidArgument (the chunk size that was given
  /// is not that of the files); kNoSpace, kIo: `scratch` cannot be used.
  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] VerifyProgress progress() const;
  /// What was found so far; complete once the job is done.
  [[nodiscard]] const Findings& findings() const;
  [[nodiscard]] const VerifyTotals& totals() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::verify
