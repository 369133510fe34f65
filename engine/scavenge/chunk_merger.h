#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/log/chunk.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/new_files.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::scavenge {

/// Merges neighbouring completed chunks whose records are committed and fit into one chunk, from
/// the first chunk of the log on, until a whole pass merges nothing; several groups of a pass side
/// by side (NewFiles). A step copies a slice of each and then, in the stepping thread, switches
/// in what is finished. A group that cannot be written is reported and left as it is; the run
/// continues.
class ChunkMerger final : public StageTask {
 public:
  ChunkMerger(RunContext& context, ParallelRunner& runner);
  ~ChunkMerger() override;
  Result<StepOutcome> step(Budget budget) override;

 private:
  using Group = std::vector<std::shared_ptr<const log::Chunk>>;
  struct Merge;
  /// Looks at the next chunk of the pass.
  Result<void> examine();
  void close_group();
  void start_merge(Group group);
  /// Switches in what is finished; waits for the disk when there is nothing else to do.
  Result<void> switch_in_finished();
  Result<void> switch_in(const Merge& merge);
  void report_all_cancelled();
  void report_failure(const Merge& merge, const Error& error);

  RunContext& context_;
  detail::NewFiles<Merge> files_;
  LogPosition next_;
  Group group_;
  std::int64_t group_size_ = 0;
  bool merged_in_pass_ = false;
  bool pass_ended_ = false;
  std::uint64_t groups_ = 0;
};

}  // namespace verger::scavenge
