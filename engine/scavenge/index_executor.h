#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "engine/index/index.h"
#include "engine/scavenge/context.h"

namespace verger::scavenge {

/// Drops entries from every PTable that is there when the stage starts, newest first. No table is
/// flushed or merged meanwhile. A table from which nothing goes stays as it is.
class IndexExecutor final : public StageTask {
 public:
  explicit IndexExecutor(RunContext& context);
  ~IndexExecutor() override;
  Result<StepOutcome> step(Budget budget) override;

 private:
  struct Table;
  Result<StepOutcome> run(Budget budget);
  Result<void> open_table();
  Result<std::unique_ptr<ScavengeState::LimitsCursor>> make_cursor();
  /// Passes over entries that stay, hash by hash, up to the next one that may go; at most `most`.
  /// For a table of which nothing has gone yet. Returns how many.
  Result<std::uint32_t> pass_kept(std::uint32_t most);
  /// What is due after so many further entries.
  std::chrono::milliseconds rest_after(std::uint32_t entries);
  /// Something of the table goes: the rest is written to a new file.
  Result<void> start_writing();
  Result<void> close_table();
  void note_order(const index::IndexEntry& entry);
  Result<bool> keeps(const index::IndexEntry& entry);
  void report_failure(const Error& error);

  RunContext& context_;
  index::Index::TableHold hold_;
  std::vector<index::TableSlot> slots_;
  std::size_t next_ = 0;
  std::unique_ptr<Table> table_;
  std::uint64_t entries_since_rest_ = 0;
  Bytes buffer_;
};

}  // namespace verger::scavenge
