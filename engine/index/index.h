#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/index/entry.h"
#include "engine/index/ptable.h"
#include "engine/index/stream_hash.h"
#include "engine/log/transaction_log.h"

namespace verger::index {

struct IndexOptions {
  bool read_only = true;
  std::uint64_t max_mem_table_size = 1'000'000;  ///< entries
  int cache_depth = 16;                          ///< midpoints: 8..28
  bool verify_md5_at_open = false;  ///< .forceverify in the directory has the same effect
  std::uint64_t stream_existence_filter_size = 256'000'000;  ///< bytes; 0 = off
  HashFunction hash = &hash_stream;
  /// Catching up at opening stops here: the caller adds what lies at or after it once it is
  /// committed. kNoPosition: the end of the log.
  LogPosition catch_up_end = kNoPosition;
  /// For writing: how far chaser.chk says that the log was processed. An index that reaches it is
  /// not of this log as it is now, and rebuilt. kNoPosition: the end of the log. Read-only it means
  /// nothing: a server at work writes chaser.chk after the index map.
  LogPosition chaser = kNoPosition;
};

/// A table's slot in the index map: level 0 is the newest, inside a level the higher position is.
struct TableSlot {
  int level = 0;
  int position = 0;
  std::shared_ptr<const PTable> table;
};

/// What to add for one write or one commit; entries of one call become visible together.
struct IndexedWrite {
  std::vector<IndexEntry> entries;
  LogPosition prepare;  ///< greatest prepare position of the write
  LogPosition commit;   ///< the commit record's position, or the last self-committed prepare's
  std::string_view stream;
};

/// The secondary index of one database: PTables, a memtable rebuilt from the log at opening, the
/// index map, the stream existence filter.
///
/// Lookups are safe from any thread, beside one thread that adds. Entries of lookups are not
/// checked against the log: a colliding stream's entries and entries of scavenged records are
/// included; engine/streams and engine/scavenge resolve them.
class Index {
 public:
  /// Loads map and tables, then catches up from `log` to `catch_up_end` (only writes that are
  /// committed there). Read-only: nothing is written, everything not in PTables is held in memory.
  /// For writing: a missing or corrupt index is rebuilt (a corrupt one is first copied to
  /// index-backup-<time> beside the directory, unless opening the log has just cut it);
  /// unreferenced files are removed as the server does, if they are named as index files are:
  /// others stay, with a warning. Errors: kCorruption (read-only: of the index; for writing: of the
  /// log), kUnsupported (a table of a newer version), kIo, kNoSpace.
  static Result<std::unique_ptr<Index>> open(FileSystem& files, const Path& directory,
                                             const log::TransactionLog& log, IndexOptions options,
                                             Clock& clock, Random& random, Log& out);
  ~Index();

  const Path& directory() const;
  StreamHash hash(std::string_view stream) const;
  /// False is certain: no event of the stream is in the index.
  bool may_exist(std::string_view stream) const;

  /// Entries of `hash` with a number in [from, to], descending by (number, position), newest table
  /// first for equal keys; entries with the same position are collapsed. At most `limit`, taken
  /// from the greatest numbers down.
  Result<std::vector<IndexEntry>> range(StreamHash hash, EventNumber from, EventNumber to,
                                        std::size_t limit) const;
  /// The same from the smallest number up; ascending.
  Result<std::vector<IndexEntry>> range_forward(StreamHash hash, EventNumber from, EventNumber to,
                                                std::size_t limit) const;
  /// The greatest entry of the newest table (memtable first) that has the hash.
  Result<std::optional<IndexEntry>> latest(StreamHash hash) const;
  /// As the server looks up the last entry below a position: newest table first, and within a table
  /// a binary search that takes positions to ascend with numbers. Where they do, that is the
  /// greatest number below `limit`; otherwise it depends on the entries the search meets.
  /// `is_of_stream` is called for each of these; one it refuses (a colliding stream's) ends the
  /// search, and all of the hash's entries are compared. nullptr refuses none.
  /// docs/formats/index.md, "Lookups".
  using EntryFilter = index::EntryFilter;
  Result<std::optional<IndexEntry>> latest_before(StreamHash hash, LogPosition limit,
                                                  const EntryFilter& is_of_stream) const;
  /// First table (oldest to newest, memtables last) that has an entry above `number`.
  Result<std::optional<IndexEntry>> next(StreamHash hash, EventNumber number) const;
  Result<std::optional<IndexEntry>> previous(StreamHash hash, EventNumber number) const;

  /// The checkpoints of the index map: what the PTables hold.
  LogPosition prepare_checkpoint() const;
  LogPosition commit_checkpoint() const;
  std::uint64_t memory_entry_count() const;
  std::vector<TableSlot> tables() const;

  // --- One adding thread ---
  Result<void> add(const IndexedWrite& write);
  /// Flushes a full memtable to level 0 and merges levels; nothing while tables are held. A table
  /// of version 1 is never merged: its level stays as it is until the index is rebuilt.
  Result<void> maintain();
  /// The log was truncated: forgets memory entries at or after `position`. kConflict when PTables
  /// reach beyond it: then the caller rebuilds.
  Result<void> truncate(LogPosition position);
  /// Throws everything away and indexes the log again, up to `end` (kNoPosition: all of it);
  /// lookups are answered from the old tables meanwhile. kRefused while tables are held. In small
  /// steps: IndexRebuildJob.
  Result<void> rebuild(const log::TransactionLog& log, LogPosition end = kNoPosition);

  // --- Index scavenge (a job's thread) ---

  /// While it lives no table is flushed or merged.
  class TableHold {
   public:
    explicit TableHold(Index& index);
    ~TableHold();
    TableHold(const TableHold&) = delete;
    TableHold& operator=(const TableHold&) = delete;

   private:
    Index& index_;
  };
  /// Puts the finished file `replacement` (PTableWriter) into the slot of `old`, saves the map and
  /// removes the old files. kNotFound when `old` is not live.
  Result<void> replace_table(const std::shared_ptr<const PTable>& old, const Path& replacement);
  const IndexOptions& options() const;

 private:
  friend class IndexRebuildJob;
  friend class EntrySweep;
  struct State;
  explicit Index(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace verger::index
