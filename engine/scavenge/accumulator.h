#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/file_verification.h"
#include "engine/log/chunk.h"
#include "engine/log/chunk_checksum.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/chunk_summary.h"
#include "engine/scavenge/detail/pending_records.h"
#include "engine/scavenge/index_view.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::scavenge {

/// Reads the log once, from the chunk after the last accumulated one to the scavenge point, and
/// notes what the streams and chunks are: limits, tombstones, collisions, time ranges, weights of
/// replaced metadata. One transaction for each logical chunk.
///
/// What records say is first summarised (detail::ChunkReader), then taken in the order of the log.
/// Where threads may work in the background (ScavengeOptions::hash_in_background, no throttle) the
/// following chunks are summarised meanwhile; what is taken, and in which order, is the same.
/// Errors: kUnsupported (a metadata record or tombstone the server fails on, too), kCorruption.
class Accumulator final : public StageTask {
 public:
  Accumulator(RunContext& context, std::optional<std::int32_t> done_chunk);
  Result<StepOutcome> step(Budget budget) override;

 private:
  /// A logical chunk that is being read, or has been and waits to be taken.
  struct Lane {
    std::unique_ptr<detail::ChunkReader> reader;
    std::deque<detail::ChunkSummary> read;   ///< to be taken
    std::deque<detail::ChunkSummary> fresh;  ///< by the step that is under way
    bool ended = false;                      ///< read to its end, or to an error
    Monotonic started{};

    [[nodiscard]] std::size_t bytes() const;
  };

  /// What the threads of a step share.
  struct ReadingAhead {
    std::atomic<std::size_t> held = 0;  ///< bytes of the summaries of all lanes
    std::atomic<bool> enough = false;   ///< what there was to be taken has been taken
  };

  /// Opens chunks until as many are read side by side as may be.
  Result<void> open_lanes();
  Result<void> open_lane();
  /// Reads about `records` records of the lane, and as many again while others are being taken and
  /// there is room for what they say.
  void read(Lane& lane, std::uint32_t records, ReadingAhead& ahead) const;
  /// The summaries of the first lane that were there when the step began; closes the chunk when
  /// that is all, and it is compared with its checksum or `may_wait` says that there is nothing
  /// else to do.
  Result<void> take_read(bool may_wait);
  Result<void> take(const detail::ChunkSummary& summary);
  Result<void> close_chunk();

  /// May threads of its own work ahead?
  [[nodiscard]] bool works_ahead() const;
  /// Compares the chunk with its checksum, or begins to while it is read; where threads work ahead
  /// begin_comparisons() does it.
  Result<std::optional<log::ChunkChecksum>> start_checksum(
      const std::shared_ptr<const log::Chunk>& chunk);
  /// Begins to compare the lanes' chunks with their checksums, and some after them; the tables,
  /// too, once it is known that they are needed.
  void begin_comparisons();
  std::unique_ptr<FileVerification> compare_from(LogPosition start) const;
  /// The one that compares it; nullptr: none.
  [[nodiscard]] FileVerification* comparison_of(const void* object) const;
  [[nodiscard]] bool is_compared(const log::Chunk& chunk) const;
  Result<void> check_tables();
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
  std::int32_t chunk_;  ///< logical, of the first lane
  std::int32_t next_;   ///< logical, to be opened
  std::deque<Lane> lanes_;
  std::unique_ptr<ParallelRunner> own_runner_;
  ParallelRunner& runner_;
  std::size_t most_lanes_;
  std::size_t most_read_;                                       ///< of these, side by side
  std::vector<std::unique_ptr<FileVerification>> comparisons_;  ///< of several files each
  bool needs_tables_ = false;  ///< records were read for which the index is asked
  bool in_chunk_ = false;      ///< its transaction is open
  bool closed_ = false;        ///< in the step that is under way
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
