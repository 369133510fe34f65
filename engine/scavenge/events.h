#pragma once

#include <cstdint>
#include <string>

#include "engine/scavenge/types.h"

namespace verger::scavenge {

/// A physical chunk was rewritten. Durations in ticks of 100 ns.
struct ChunkExecuted {
  std::int32_t start = 0;
  std::int32_t end = 0;
  std::int64_t time_taken = 0;
  std::int64_t space_saved = 0;  ///< old file size - new one; may be negative
  std::uint64_t records_kept = 0;
  std::uint64_t records_discarded = 0;
  double weight = 0;
};

/// Neighbouring chunks were merged, or could not be.
struct ChunksMerged {
  std::int32_t start = 0;
  std::int32_t end = 0;
  std::int64_t time_taken = 0;
  std::int64_t space_saved = 0;
  bool merged = false;
  std::string error;
};

struct TableScavenged {
  int level = 0;  ///< -1 (index, too) after a failure or a stop
  int index = 0;
  std::int64_t time_taken = 0;
  std::uint64_t entries_deleted = 0;
  std::uint64_t entries_kept = 0;
  std::int64_t space_saved = 0;
  bool scavenged = false;
  std::string error;
};

/// How far a run is; counts since its start.
struct ScavengeProgress {
  Stage stage = Stage::kAccumulating;
  /// Of the current stage, in its units: logical chunks, streams, log positions in chunks, groups,
  /// tables. `total` is 0 where it is not known beforehand.
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t records_accumulated = 0;
  std::uint64_t streams_calculated = 0;
  std::uint64_t chunks_executed = 0;
  std::uint64_t chunks_skipped = 0;
  std::uint64_t records_kept = 0;
  std::uint64_t records_discarded = 0;
  std::uint64_t groups_merged = 0;
  std::uint64_t entries_kept = 0;
  std::uint64_t entries_discarded = 0;
  std::int64_t space_saved = 0;
  std::int32_t max_chunk_executed = 0;  ///< 0 when none
};

/// Receives what a run does, in the thread that steps the job. Default: nothing.
class ScavengeEvents {
 public:
  virtual ~ScavengeEvents() = default;
  virtual void stage_started(Stage stage) { static_cast<void>(stage); }
  virtual void chunk_executed(const ChunkExecuted& chunk) { static_cast<void>(chunk); }
  virtual void chunks_merged(const ChunksMerged& chunks) { static_cast<void>(chunks); }
  virtual void table_scavenged(const TableScavenged& table) { static_cast<void>(table); }
};

}  // namespace verger::scavenge
