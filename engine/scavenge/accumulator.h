#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/background_stage.h"
#include "engine/log/chunk.h"
#include "engine/log/chunk_checksum.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/accumulated_batch.h"
#include "engine/scavenge/detail/batch_preparation.h"
#include "engine/scavenge/detail/batch_writer.h"
#include "engine/scavenge/detail/checksums_ahead.h"
#include "engine/scavenge/detail/chunk_summary.h"
#include "engine/scavenge/detail/reading_ahead.h"

namespace verger::scavenge {

/// Reads the log once, from the chunk after the last accumulated one to the scavenge point, and
/// notes what the streams and chunks are: limits, tombstones, collisions, time ranges, weights of
/// replaced metadata. One transaction for each logical chunk.
///
/// What records say is first summarised (detail::ChunkReader), then taken in the order of the log
/// into a batch, which is prepared (detail::BatchPreparation) and then stored
/// (detail::BatchWriter). Where threads may work ahead (ScavengeOptions::works_ahead) the following
/// chunks are summarised, and the next batch is filled and prepared, meanwhile, from one step to
/// the next, so that the state belongs to the task until it is done, has failed, or is destroyed;
/// what is taken and stored, and in which order, is the same. Errors: kUnsupported (a metadata
/// record or tombstone the server fails on, too), kCorruption.
class Accumulator final : public StageTask {
 public:
  Accumulator(RunContext& context, std::optional<std::int32_t> done_chunk);
  /// After an error nothing is being stored any longer.
  Result<StepOutcome> step(Budget budget) override;

 private:
  /// A logical chunk.
  struct Source {
    using Part = detail::ChunkSummary;

    std::unique_ptr<detail::ChunkReader> reader;
    Monotonic started{};
    bool has_records = false;  ///< for which the index is asked

    Part read(std::uint32_t records);
  };
  using Ahead = detail::ReadingAhead<Source>;

  /// A step; after an error a batch may still be being stored.
  Result<StepOutcome> advance(Budget budget);
  [[nodiscard]] Ahead::Bounds bounds() const;
  /// The next logical chunk; nullopt: none has to be read.
  Result<std::optional<Ahead::Opened>> open_next();
  /// Takes what some records of the first chunk say, and closes the chunk after the last of them.
  /// False: the batch is complete; or the chunk has still to be compared with its checksum, and
  /// there is something better to do than waiting for that.
  Result<bool> take_part(detail::ChunkSummary& summary, bool may_wait);
  Result<void> take(const detail::ChunkSummary& summary);
  Result<void> close_chunk();

  /// Compares the chunk with its checksum, or begins to while it is read, unless ChecksumsAhead
  /// does it.
  Result<std::optional<log::ChunkChecksum>> start_checksum(
      const std::shared_ptr<const log::Chunk>& chunk);
  void begin_checksums_ahead();
  Result<void> check_tables();
  /// Of the first chunk.
  Result<void> finish_checksum();
  /// What is filled is complete: prepares it.
  Result<void> finish_batch();
  /// Stores what is filled, or has it stored, after the batch before it.
  Result<void> store_filled();
  /// Looks at the outcome of the batch that is being stored, if it is, or waits for it.
  Result<void> collect_stored(bool wait);
  /// The batch is empty from now on, and its outcome the result.
  Result<void> finish_stored(std::unique_ptr<detail::AccumulatedBatch> batch);
  /// Keeps the name for that, unless it was noted before.
  void note(std::string_view stream, const detail::SeenNames::Key& key);
  void settle();

  RunContext& context_;
  std::int32_t chunk_;                               ///< logical, the first of those that are read
  std::int32_t next_;                                ///< logical, to be opened
  std::optional<detail::ChecksumsAhead> checksums_;  ///< where threads may work ahead
  bool needs_tables_ = false;  ///< records were read for which the index is asked
  Ahead ahead_;
  detail::ReadCounts counts_;       ///< of the first chunk
  std::optional<TimeRange> range_;  ///< likewise
  bool point_reached_ = false;
  std::unique_ptr<detail::AccumulatedBatch> filling_;
  std::unique_ptr<detail::AccumulatedBatch> spare_;  ///< empty; nullptr: it is being stored
  bool complete_ = false;                            ///< what is filled is to be stored
  detail::BatchPreparation preparation_;
  detail::BatchWriter writer_;
  std::uint64_t chunks_ = 0;  ///< stored
  /// Where threads may work ahead. Last: it ends before what it uses.
  std::optional<BackgroundStage<detail::AccumulatedBatch>> storing_;
};

}  // namespace verger::scavenge
