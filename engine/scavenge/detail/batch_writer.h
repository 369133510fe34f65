#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/accumulated_batch.h"
#include "engine/scavenge/detail/record_order.h"

namespace verger::scavenge::detail {

/// Stores what was accumulated: names, limits, tombstones, weights of replaced metadata. One
/// transaction for each logical chunk. One thread at a time uses it; of the run it uses the state,
/// the index, clock and log, and whether it is to stop, so that another thread may read chunks and
/// compare their checksums meanwhile.
class BatchWriter {
 public:
  explicit BatchWriter(RunContext& context);
  /// Stores the batch, which BatchPreparation has prepared and which comes after the one before in
  /// the log; commits when a chunk has ended. After an error the transaction is to
  /// be rolled back. Errors: those of the state; kCancelled.
  Result<void> write(AccumulatedBatch& batch);

 private:
  /// In the order of the hashes, or in that of the log when a stream collides for the first time.
  Result<void> store(AccumulatedBatch& batch);
  Result<void> store_in_order(PendingRecords& pending);
  Result<void> end_chunk(const AccumulatedBatch::EndedChunk& chunk);
  void report_chunk(const AccumulatedBatch::EndedChunk& chunk, Monotonic before_commit);
  Result<void> report_collision(std::string_view stream);
  /// What the record, of that metastream, means for it, and for the original stream. What the
  /// index says of it is known already, unless its stream is kept by name.
  Result<void> apply_to_metastream(PendingRecord& record, std::string_view metastream);
  /// Limits of streams that are kept by hash are only added to `by_hash`, unless that is nullptr.
  Result<void> apply_to_original(const PendingRecord& record, std::string_view metastream,
                                 std::vector<ScavengeState::LimitsOfStream>* by_hash);
  void add_weight(LogPosition position);

  RunContext& context_;
  std::optional<RecordOrder> order_;  ///< for streams kept by name, once there is one
  bool in_transaction_ = false;
  std::map<std::int32_t, double> weights_;  ///< added by records of the chunk that has not ended
};

}  // namespace verger::scavenge::detail
