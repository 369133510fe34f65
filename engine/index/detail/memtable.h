#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/index/entry.h"

namespace verger::index::detail {

/// The entries that are not in PTables yet. A value: adding gives a new one that shares most of its
/// memory with the old, so that readers keep what they have while the adding thread continues.
///
/// It is a few sorted runs, the newest and smallest last; adding merges runs of like size, so an
/// entry is copied some log2(count) times.
class Memtable {
 public:
  using Run = std::vector<IndexEntry>;  // descending

  /// These entries and `entries`, in any order.
  [[nodiscard]] std::shared_ptr<const Memtable> with(std::span<const IndexEntry> entries) const;
  [[nodiscard]] std::shared_ptr<const Memtable> filtered(
      const std::function<bool(const IndexEntry&)>& keep) const;
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] bool may_contain(StreamHash hash) const;
  /// All entries, descending.
  [[nodiscard]] Run sorted() const;

  // As in PTable.
  void range(StreamHash hash, EventNumber from, EventNumber to, std::size_t limit, Run& out) const;
  void range_forward(StreamHash hash, EventNumber from, EventNumber to, std::size_t limit,
                     Run& out) const;
  [[nodiscard]] std::optional<IndexEntry> latest(StreamHash hash) const;
  [[nodiscard]] std::optional<IndexEntry> previous(StreamHash hash, EventNumber number) const;
  [[nodiscard]] std::optional<IndexEntry> next(StreamHash hash, EventNumber number) const;
  [[nodiscard]] Result<std::optional<IndexEntry>> latest_before(
      StreamHash hash, LogPosition limit, const EntryFilter& is_of_stream) const;

 private:
  std::vector<std::shared_ptr<const Run>> runs_;
  std::uint64_t count_ = 0;
};

}  // namespace verger::index::detail
