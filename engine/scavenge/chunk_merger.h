#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/log/chunk.h"
#include "engine/scavenge/context.h"

namespace verger::scavenge {

/// Merges neighbouring completed chunks whose records are committed and fit into one chunk, from
/// the first chunk of the log on, until a whole pass merges nothing. A group that cannot be written
/// is reported and left as it is; the run continues.
class ChunkMerger final : public StageTask {
 public:
  explicit ChunkMerger(RunContext& context);
  ~ChunkMerger() override;
  Result<StepOutcome> step(Budget budget) override;

 private:
  struct Merge;
  /// Looks at the next chunk; starts a merge where a group is complete. False at the pass's end.
  Result<bool> examine();
  void close_group();
  /// Starts the merge of the group that close_group() chose.
  void start_merge();
  /// Continues copying; true once the merged file is complete.
  Result<bool> copy(std::uint32_t records);
  Result<void> finish_merge();
  void report_failure(const Error& error);

  RunContext& context_;
  LogPosition next_;
  std::vector<std::shared_ptr<const log::Chunk>> group_;
  std::int64_t group_size_ = 0;
  std::vector<std::shared_ptr<const log::Chunk>> chosen_;
  std::unique_ptr<Merge> merge_;
  bool merged_in_pass_ = false;
  bool pass_ended_ = false;
  std::uint64_t groups_ = 0;
};

}  // namespace verger::scavenge
