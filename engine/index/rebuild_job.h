#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/job.h"
#include "engine/base/types.h"
#include "engine/index/index.h"
#include "engine/log/transaction_log.h"

namespace verger::index {

/// The level of a table with so many entries: those of a full memtable times two to this power fit
/// into it.
int table_level(std::uint64_t entries, std::uint64_t max_mem_table_size);

/// Indexes a log from its start: reads its records once, sorts their entries in batches of
/// max_mem_table_size (a step that fills one sorts it at any budget), merges them into one
/// PTable and puts that in place of all others. Until then the old tables are live and untouched;
/// abandoning the job leaves them so.
///
/// Belongs to the index's adding thread: nothing is added between its first step and its end.
/// Step errors: kRefused (tables are held), kCorruption (the log), kIo, kNoSpace.
class IndexRebuildJob final : public Job {
 public:
  /// Up to `end`; kNoPosition: the end of the log. Both must outlive the job. `threads` above 1: as
  /// many of its own read chunks side by side, and another one hashes the table; the table is the
  /// same.
  IndexRebuildJob(Index& index, const log::TransactionLog& log, LogPosition end = kNoPosition,
                  int threads = 1);
  ~IndexRebuildJob() override;
  Result<StepOutcome> step(Budget budget) override;

  std::uint64_t records_read() const;
  std::uint64_t entries_found() const;

 private:
  friend class Index;
  struct State;
  explicit IndexRebuildJob(std::unique_ptr<State> state);
  /// For opening: an index of less than a full memtable stays in memory, as the server has it.
  static IndexRebuildJob for_opening(Index& index, const log::TransactionLog& log, LogPosition end);
  std::unique_ptr<State> state_;
};

}  // namespace verger::index
