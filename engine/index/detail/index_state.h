#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "engine/base/clock.h"
#include "engine/index/detail/memtable.h"
#include "engine/index/detail/table_set.h"
#include "engine/index/existence_filter.h"
#include "engine/index/index.h"
#include "engine/index/index_map.h"

namespace verger::index {

/// What a lookup works on: taken once, unchanged until the lookup ends.
struct IndexView {
  std::shared_ptr<const detail::Memtable> memory;
  std::shared_ptr<const detail::TableSet> set;
  std::vector<std::shared_ptr<const PTable>> newest_first;
};

struct Index::State {
  FileSystem& files;
  Path directory;
  IndexOptions options;
  Clock& clock;
  Random& random;
  Log& out;

  State(FileSystem& files_in, Path directory_in, IndexOptions options_in, Clock& clock_in,
        Random& random_in, Log& out_in);

  // --- Any thread ---
  [[nodiscard]] std::shared_ptr<const IndexView> view() const {
    const std::lock_guard lock(view_mutex_);
    return view_;
  }
  /// nullptr leaves that part as it is: the memtable belongs to the adding thread, the tables to
  /// who holds `structure`.
  void publish(std::shared_ptr<const detail::Memtable> memory,
               std::shared_ptr<const detail::TableSet> set);
  /// Hands an error on; damage is remembered for the next opening.
  Error noted(Error error);

  // --- Held while tables change: `structure` ---
  std::mutex structure;
  int holds = 0;

  Result<void> save(const detail::TableSet& set);
  Result<void> flush();
  Result<void> merge_level(int level);
  Result<void> replace(const std::shared_ptr<const PTable>& old, const Path& replacement);
  /// Publishes `set`, which is saved already, and removes the files it no longer holds.
  void adopt(std::shared_ptr<const detail::Memtable> memory,
             std::shared_ptr<const detail::TableSet> set);
  void remove_table(const PTable& table);

  // --- The adding thread ---
  Result<void> load_tables(const log::TransactionLog& log);
  [[nodiscard]] Result<void> check_against_log(const IndexMap& map,
                                               const log::TransactionLog& log) const;
  Result<void> catch_up(const log::TransactionLog& log);
  Result<void> clean_up();
  void note_for_existence(const log::Prepare& prepare, StreamHash hash);
  Result<void> add(std::span<const IndexEntry> entries, LogPosition prepare, LogPosition commit);
  /// The entries that are not in PTables by their checkpoints. A server that catches up indexes
  /// each prepare without commit record on its own, so a flush may have split a write.
  void select_new(std::span<const IndexEntry> entries, LogPosition commit, bool has_commit_record,
                  std::vector<IndexEntry>& added) const;
  void remember_commit(std::span<const IndexEntry> entries, LogPosition prepare,
                       LogPosition commit);
  Result<void> truncate(LogPosition position);
  Result<void> update_existence_filter(const detail::Memtable::Run& flushed);

  LogPosition last_prepare = kNoPosition;  ///< of the write added last
  LogPosition last_commit = kNoPosition;
  /// Writes in memory whose commit record lies behind their prepares.
  struct ExplicitWrite {
    LogPosition prepare;
    LogPosition commit;
    std::vector<LogPosition> positions;
  };
  std::vector<ExplicitWrite> explicit_writes;
  ExistenceFilter existence;
  /// The memtable and these begin where the existence filter ends, so a flush may move it on.
  bool existence_contiguous = false;
  std::unordered_set<StreamHash> streams_without_entry;

 private:
  mutable std::mutex view_mutex_;
  std::shared_ptr<const IndexView> view_;
  std::atomic<bool> damage_noted_ = false;
};

namespace detail {

inline constexpr std::string_view kForceVerifyName = ".forceverify";

/// Copies the index directory to index-backup-<time> beside it, and returns that path.
Result<Path> back_up(FileSystem& files, const Path& directory, Clock& clock);

}  // namespace detail
}  // namespace verger::index
