#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/scavenge/chunk_rewrite.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/files_at_once.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::scavenge {

/// Rewrites every physical chunk before the scavenge point whose weight exceeds the threshold,
/// several of them side by side (FilesAtOnce). A step runs a slice of each and then, in the
/// stepping thread, switches in what is finished, in the order of the log. A crash after a switch
/// and before the reset of the weights makes the chunk be executed again, with the same result.
class ChunkExecutor final : public StageTask {
 public:
  ChunkExecutor(RunContext& context, ParallelRunner& runner,
                std::optional<std::int32_t> done_chunk);
  ~ChunkExecutor() override;
  Result<StepOutcome> step(Budget budget) override;

 private:
  struct Slot;
  /// Loads the limits before the first chunk that is executed: mostly there is none.
  Result<void> give_limits(Slot& slot);
  [[nodiscard]] bool executes(double weight) const;
  /// Ends the run before any chunk has changed where the server fails in the middle of it.
  Result<void> check_numbers();
  /// Gives idle slots the next chunks.
  Result<void> fill_slots();
  /// Gives the slot the next chunk that is to be executed; skips others.
  Result<void> fill(Slot& slot);
  /// Switches in what is complete, unless an earlier chunk is still under way.
  Result<void> finish_slots();
  Result<void> finish(Slot& slot);
  /// Writes how far all chunks are done; true when that has grown.
  Result<bool> write_checkpoint();

  RunContext& context_;
  ParallelRunner& runner_;
  FilesAtOnce files_;
  std::unique_ptr<SharedLimits> limits_;
  std::vector<std::unique_ptr<Slot>> slots_;
  LogPosition next_;
  std::int32_t last_end_ = -1;  ///< end of the last chunk handed out or skipped
  std::optional<std::int32_t> written_;
  std::uint64_t executed_ = 0;
};

}  // namespace verger::scavenge
