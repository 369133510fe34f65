#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/log/chunk.h"
#include "engine/log/chunk_checksum.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/pending_records.h"
#include "engine/scavenge/index_view.h"

namespace verger::scavenge {

/// Reads the log once, from the chunk after the last accumulated one to the scavenge point, and
/// notes what the streams and chunks are: limits, tombstones, collisions, time ranges, weights of
/// replaced metadata. One transaction for each logical chunk.
/// Errors: kUnsupported (a metadata record or tombstone the server fails on, too), kCorruption.
class Accumulator final : public StageTask {
 public:
  Accumulator(RunContext& context, std::optional<std::int32_t> done_chunk);
  Result<StepOutcome> step(Budget budget) override;

 private:
  /// False when there is no further chunk to read.
  Result<bool> open_chunk();
  Result<void> close_chunk();
  /// Begins to compare the chunk with its checksum.
  Result<void> start_checksum(const std::shared_ptr<const log::Chunk>& chunk);
  /// With several threads the chunk after this one is compared at the same time.
  void look_ahead(const log::Chunk& chunk);
  Result<void> finish_checksum();
  Result<void> take(const log::LogRecord& record);
  void report_chunk(Monotonic before_commit);
  Result<void> add(const log::Prepare& prepare);
  Result<void> add_metadata(const log::Prepare& prepare);
  Result<void> add_tombstone(const log::Prepare& prepare);
  /// Keeps the name for carry_out(), unless it was noted before.
  void note(std::string_view stream);
  void settle();
  /// Does what was kept: all of it sorted by hash, which is several times as fast as in the order
  /// of the log, or in that order when a stream collides for the first time.
  Result<void> carry_out();
  Result<void> carry_out_in_order();
  /// What the record means for its metastream, and for the original stream.
  Result<void> apply_to_metastream(detail::PendingRecord& record);
  Result<void> apply_to_original(const detail::PendingRecord& record);
  Result<void> report_collision(std::string_view stream);
  /// What an earlier or later record in the metastream means for this one.
  struct MetadataOrder {
    bool in_order = true;
    std::optional<LogPosition> replaced;
  };
  Result<MetadataOrder> order_of(const detail::PendingRecord& record,
                                 const StreamHandle& metastream);
  void add_weight(LogPosition position);

  RunContext& context_;
  IndexView index_;
  std::int32_t chunk_;  ///< logical
  LogPosition chunk_end_;
  std::optional<log::ChunkScanner> scanner_;
  std::shared_ptr<const log::Chunk> file_;                ///< that `scanner_` reads
  std::optional<log::ChunkChecksum> checksum_;            ///< nullopt: compared already, or not so
  std::unique_ptr<log::ChunkVerification> verification_;  ///< of `file_`, where it began before
  std::unique_ptr<log::ChunkVerification> ahead_;         ///< of a chunk behind it
  std::optional<TimeRange> range_;
  std::uint64_t records_ = 0;
  /// Of this chunk, for the log.
  struct Counts {
    std::uint64_t records = 0;
    std::uint64_t originals = 0;
    std::uint64_t metadatas = 0;
    std::uint64_t tombstones = 0;
    Monotonic started{};
  };
  Counts counts_;
  std::uint64_t chunks_ = 0;
  bool point_reached_ = false;
  std::vector<index::IndexEntry> infos_;
  detail::PendingRecords pending_;
  std::map<std::int32_t, double> weights_;  ///< added by this chunk's records
};

}  // namespace verger::scavenge
