#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/scavenge/context.h"
#include "engine/scavenge/index_view.h"

namespace verger::scavenge {

/// Visits the active streams and decides, from index and limits, how far each is discarded, and how
/// much that weighs in each chunk. One transaction for each batch of streams.
class Calculator final : public StageTask {
 public:
  Calculator(RunContext& context, std::optional<StreamHandle> done);
  Result<StepOutcome> step(Budget budget) override;

 private:
  Result<bool> next_row();
  Result<void> start_stream();
  /// Reads one slice of the current stream; true when the stream is finished.
  Result<bool> walk_slice();
  Result<EventDecision> decide(const index::IndexEntry& entry);
  Result<void> finish_stream();
  Result<void> finish_batch();
  Result<const std::optional<TimeRange>*> range_of(std::int32_t chunk);

  RunContext& context_;
  IndexView index_;
  std::optional<StreamHandle> done_;
  std::vector<OriginalRow> rows_;
  std::size_t row_ = 0;
  bool in_batch_ = false;
  std::uint64_t batch_size_ = 0;
  std::uint64_t streams_ = 0;
  std::uint64_t infos_since_rest_ = 0;

  // The current stream.
  bool in_stream_ = false;
  EventNumber last_;
  std::optional<Ticks> cutoff_;
  std::int64_t slice_ = 0;
  StreamWalk walk_;
  std::vector<index::IndexEntry> infos_;

  std::unordered_map<std::int32_t, double> weights_;  ///< of the batch
  std::unordered_map<std::int32_t, std::optional<TimeRange>> ranges_;
};

}  // namespace verger::scavenge
