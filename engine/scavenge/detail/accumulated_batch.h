#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/result.h"
#include "engine/scavenge/detail/pending_records.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge::detail {

/// Records of a batch that are worked on between two looks at whether the run is to stop.
constexpr std::uint64_t kRecordsBetweenStops = 1024;

/// What was read of a chunk, for the log of the run.
struct ReadCounts {
  std::uint64_t records = 0;
  std::uint64_t originals = 0;
  std::uint64_t metadatas = 0;
  std::uint64_t tombstones = 0;
};

/// A stretch of the log that was accumulated and is not stored yet: at most to the end of a logical
/// chunk.
struct AccumulatedBatch {
  struct EndedChunk {
    std::int32_t number = 0;
    std::optional<TimeRange> range;
    ReadCounts counts;
    Monotonic started{};
  };

  explicit AccumulatedBatch(std::size_t most_names) : pending(most_names) {}
  AccumulatedBatch(const AccumulatedBatch&) = delete;  // views into itself
  AccumulatedBatch& operator=(const AccumulatedBatch&) = delete;

  PendingRecords pending;
  // By BatchPreparation, which also sorts the records by the hashes of their metastreams:
  std::vector<ScavengeState::NamedHash> streams;  ///< by row_key()
  std::vector<std::uint32_t> by_original;  ///< places of records, by the original streams' hashes
  std::optional<EndedChunk> ended;         ///< the last record of this chunk is among them
  Result<void> stored;                     ///< outcome of BatchWriter, once it has ended

  void clear() {
    pending.clear();
    streams.clear();
    by_original.clear();
    ended.reset();
    stored = {};
  }
};

}  // namespace verger::scavenge::detail
