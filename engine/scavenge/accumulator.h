#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/log/chunk.h"
#include "engine/log/chunk_checksum.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/checksums_ahead.h"
#include "engine/scavenge/detail/chunk_summary.h"
#include "engine/scavenge/detail/pending_records.h"
#include "engine/scavenge/detail/reading_ahead.h"
#include "engine/scavenge/index_view.h"

namespace verger::scavenge {

/// Reads the log once, from the chunk after the last accumulated one to the scavenge point, and
/// notes what the streams and chunks are: limits, tombstones, collisions, time ranges, weights of
/// replaced metadata. One transaction for each logical chunk.
///
/// What records say is first summarised (detail::ChunkReader), then taken in the order of the log.
/// Where threads may work ahead (ScavengeOptions::works_ahead) the following chunks are summarised
/// meanwhile; what is taken, and in which order, is the same.
/// Errors: kUnsupported (a metadata record or tombstone the server fails on, too), kCorruption.
class Accumulator final : public StageTask {
 public:
  Accumulator(RunContext& context, std::optional<std::int32_t> done_chunk);
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

  [[nodiscard]] Ahead::Bounds bounds() const;
  /// The next logical chunk; nullopt: none has to be read.
  Result<std::optional<Ahead::Opened>> open_next();
  /// Takes what some records of the first chunk say, and closes the chunk after the last of them.
  /// False: it has still to be compared with its checksum, and there is something better to do than
  /// waiting for that.
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
  void report_chunk(Monotonic before_commit);
  /// Keeps the name for carry_out(), unless it was noted before.
  void note(std::string_view stream, const detail::SeenNames::Key& key);
  void settle();
  /// Does what was kept: all of it sorted by hash, which is several times as fast as in the order
  /// of the log, or in that order when a stream collides for the first time.
  Result<void> carry_out();
  Result<void> carry_out_in_order();
  /// What the record means for its metastream, and for the original stream.
  Result<void> apply_to_metastream(detail::PendingRecord& record);
  /// Limits of streams that are kept by hash are only added to `by_hash`, unless that is nullptr.
  Result<void> apply_to_original(const detail::PendingRecord& record,
                                 std::vector<ScavengeState::LimitsOfStream>* by_hash);
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
  std::int32_t chunk_;                               ///< logical, the first of those that are read
  std::int32_t next_;                                ///< logical, to be opened
  std::optional<detail::ChecksumsAhead> checksums_;  ///< where threads may work ahead
  bool needs_tables_ = false;  ///< records were read for which the index is asked
  Ahead ahead_;
  bool in_chunk_ = false;  ///< its transaction is open
  /// Of this chunk.
  struct Counts {
    std::uint64_t records = 0;
    std::uint64_t originals = 0;
    std::uint64_t metadatas = 0;
    std::uint64_t tombstones = 0;
  };
  Counts counts_;
  std::optional<TimeRange> range_;
  std::uint64_t chunks_ = 0;
  bool point_reached_ = false;
  std::vector<index::IndexEntry> infos_;
  detail::PendingRecords pending_;
  std::map<std::int32_t, double> weights_;  ///< added by this chunk's records
};

}  // namespace verger::scavenge
