#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "engine/streams/event_store.h"
#include "engine/verify/detail/expected_entries.h"
#include "engine/verify/detail/filters.h"
#include "engine/verify/detail/table_entries.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// Compares index and log both ways, in one pass over the sorted entries of each.
class IndexComparison {
 public:
  struct Totals {
    std::uint64_t entries = 0;
    std::uint64_t without_record = 0;  ///< entries of records that were scavenged away
    std::uint64_t without_entry = 0;   ///< records that a scavenge let go from the index only
  };

  /// `expected` has read the log. All outlive it.
  IndexComparison(const streams::Database& database, ExpectedEntries& expected,
                  ExistenceCheck& existence, Findings& findings);

  /// True once all is compared. Error: the log or the index cannot be read on.
  Result<bool> step(std::uint32_t units);
  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  Result<void> begin();
  Result<void> compare_one();
  /// Passes over entries that table and log agree on, up to the last of those in memory; at most
  /// `most`. Returns how many.
  std::uint32_t pass_equal(std::uint32_t most);
  Result<void> look_at(TableEntries::Source& source, bool matched);
  /// The first part of it.
  void count(TableEntries::Source& source, const index::IndexEntry& entry, std::uint64_t number);
  Result<void> look_up(const index::IndexEntry& event);
  Result<void> entry_against_log(const index::PTable& table, const index::IndexEntry& entry,
                                 std::uint64_t n);
  void damaged_entry(const index::PTable& table, const index::IndexEntry& entry, std::uint64_t n,
                     std::string_view why);

  const streams::Database& database_;
  const log::TransactionLog& log_;
  const index::Index& index_;
  ExpectedEntries& expected_;
  ExistenceCheck& existence_;
  Findings& findings_;
  LogPosition complete_from_;
  std::optional<TableEntries> tables_;
  TableEntries::Source* found_ = nullptr;
  bool wanted_ = false;  ///< `expected_` has a current entry
  std::optional<index::IndexEntry> matched_;
  /// Tables of versions 1 and 2 hold half of the hash or cut numbers: their entries are looked at
  /// one by one.
  std::deque<TableEntries> old_tables_;
  Bytes buffer_;
  Totals totals_;
};

/// The chain of epochs, and whether epoch.chk is part of it.
void check_epochs(const log::TransactionLog& log, Findings& findings);
/// How far the index goes beside the log.
void check_reach(const streams::Database& database, Findings& findings);

}  // namespace verger::verify::detail
