#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/index/bloom_filter.h"
#include "engine/index/ptable.h"

namespace verger::verify {

/// Streams of the index tables that the stream existence filter does not have, although its
/// checkpoint says so: a server finds none of them after its next start, when it no longer has
/// their names in memory. A replica that was refilled from scavenged chunks has such streams, whose
/// event 0 no chunk holds. Reads index and filter alone, beside a running server or a stopped one.
/// A stream of which a scavenge has left nothing but its entries counts until the scavenge has done
/// the index. Version-1 tables have half of the hash, and are passed over.
///
/// One table is open at a time, so that the space of those that are merged away meanwhile is not
/// kept in use; what came in their place is read, too.
class LostStreamsJob final : public Job {
 public:
  /// `files` outlives it.
  LostStreamsJob(FileSystem& files, Path index_directory)
      : files_(files), directory_(std::move(index_directory)) {}
  /// Errors: kUnavailable (tables are merged faster than they are opened: try again), kIo,
  /// kCorruption.
  Result<StepOutcome> step(Budget budget) override;
  /// Once it is done: what the filter has by now is lost no longer. Of a server that was restarted
  /// meanwhile, or that wrote an entry of a transaction to a table before its filter had it.
  Result<void> look_again();

  /// Of a hash that is missing, its entry with the greatest number in one of the tables.
  struct Lost {
    StreamHash hash;
    LogPosition position;
  };
  /// At kMostCounted it ends.
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(lost_.size()); }
  static constexpr std::size_t kMostCounted = 1'000'000;
  /// The first of them, at most kListed.
  static constexpr std::size_t kListed = 1'000;
  [[nodiscard]] const std::vector<Lost>& listed() const { return listed_; }
  [[nodiscard]] std::uint64_t done() const { return done_; }  ///< index entries
  /// About as many entries as all tables have.
  [[nodiscard]] std::uint64_t total() const { return std::max(done_, total_); }

 private:
  Result<void> open();
  /// False: the filter is to be made anew, or cannot be used: nothing is lost.
  Result<bool> open_filter();
  Result<void> list_tables();
  /// False: all have been read.
  Result<bool> open_next_table();
  void look_at(const index::IndexEntry& entry);

  FileSystem& files_;
  Path directory_;
  bool is_open_ = false;
  std::unique_ptr<index::BloomFilter> filter_;  ///< nullptr: there is nothing to lose
  LogPosition checkpoint_ = kNoPosition;
  std::vector<std::string> to_read_;  ///< names of tables, the next one last
  std::set<std::string> read_;
  int listings_without_progress_ = 0;
  std::optional<index::PTableScanner> scanner_;
  std::optional<StreamHash> last_seen_;
  std::set<StreamHash> lost_;
  std::vector<Lost> listed_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

/// Whether a server that starts now makes the filter anew: it has no checkpoint. Errors: kIo.
Result<bool> existence_filter_is_due(FileSystem& files, const Path& index_directory);
/// Removes the checkpoint of the filter, durably: the next start of the server makes it anew. Of a
/// stopped server only. What is gone already is done.
Result<void> drop_existence_checkpoint(FileSystem& files, const Path& index_directory);

}  // namespace verger::verify
