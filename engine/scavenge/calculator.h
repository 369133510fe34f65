#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/scavenge/context.h"
#include "engine/scavenge/stream_walker.h"

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
  Result<void> finish_stream();
  Result<void> finish_batch();

  RunContext& context_;
  StreamWalker walker_;
  std::optional<StreamHandle> done_;
  std::vector<OriginalRow> rows_;
  std::size_t row_ = 0;
  bool in_batch_ = false;
  bool changed_ = false;  ///< a row of the batch
  std::uint64_t batch_size_ = 0;
  std::uint64_t streams_ = 0;
  std::uint64_t infos_since_rest_ = 0;

  /// So far no index entry of a calculated stream goes; false where an earlier run has begun.
  bool entries_stay_;
  bool in_stream_ = false;
  std::unordered_map<std::int32_t, double> weights_;   ///< of the batch
  std::vector<ScavengeState::PointsOfStream> points_;  ///< of the batch, not stored yet
};

}  // namespace verger::scavenge
