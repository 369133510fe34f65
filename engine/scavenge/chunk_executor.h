#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/scavenge/chunk_rewrite.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/new_files.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::scavenge {

/// Rewrites every physical chunk before the scavenge point whose weight exceeds the threshold,
/// several of them side by side (NewFiles). A step copies a slice of each and then, in the
/// stepping thread, switches in what is finished, in the order of the log. A crash after a switch
/// and before the reset of the weights makes the chunk be executed again, with the same result.
class ChunkExecutor final : public StageTask {
 public:
  ChunkExecutor(RunContext& context, ParallelRunner& runner,
                std::optional<std::int32_t> done_chunk);
  ~ChunkExecutor() override;
  Result<StepOutcome> step(Budget budget) override;

 private:
  struct Work;
  /// Of the limits, which are loaded before the first chunk that is executed: mostly there is none.
  Result<std::unique_ptr<LimitsReader>> take_reader();
  [[nodiscard]] bool executes(double weight) const;
  /// Ends the run before any chunk has changed where the server fails in the middle of it.
  Result<void> check_numbers();
  /// Begins as many chunks as may be under way.
  Result<void> begin_chunks();
  /// Begins the next chunk that is to be executed; skips others.
  Result<void> begin_chunk();
  /// Switches in what is finished, unless an earlier chunk is still under way; waits for the disk
  /// when there is nothing else to do.
  Result<void> switch_in_finished();
  Result<void> switch_in(const Work& work);
  /// Writes how far all chunks are done; true when that has grown.
  Result<bool> write_checkpoint();

  RunContext& context_;
  std::unique_ptr<SharedLimits> limits_;
  std::vector<std::unique_ptr<LimitsReader>> readers_;  ///< unused ones
  std::set<std::int32_t> under_way_;  ///< first chunk numbers of what is in the next two
  detail::NewFiles<Work> files_;
  std::map<std::int32_t, std::unique_ptr<Work>> finished_;  ///< by the first chunk number
  LogPosition next_;
  std::int32_t last_end_ = -1;  ///< end of the last chunk begun or skipped
  std::optional<std::int32_t> written_;
  std::uint64_t executed_ = 0;
};

}  // namespace verger::scavenge
