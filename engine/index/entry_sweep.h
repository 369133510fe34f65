#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/index/index.h"

namespace verger::index {

/// The entries of many streams, one stream after the other. Any order of hashes is right; when they
/// ascend, the tables are read from back to front in large pieces instead of being searched for
/// each stream. Holds what the index was when the sweep was made: tables replaced since stay
/// readable. One thread. Memory: some 200 KiB for each table.
class EntrySweep {
 public:
  /// `index` outlives it.
  explicit EntrySweep(const Index& index);
  ~EntrySweep();
  EntrySweep(const EntrySweep&) = delete;
  EntrySweep& operator=(const EntrySweep&) = delete;

  /// The entries of one hash, as they lie: by table, each part descending.
  struct Found {
    std::vector<IndexEntry> entries;
    /// Where each part ends: the memory entries' first, then the tables', newest to oldest.
    std::vector<std::size_t> ends;
  };
  /// False when there are more than `limit` of them in one part, or a table is of version 1: then
  /// the stream is to be looked up in the Index. Errors: kCorruption (order), kIo.
  Result<bool> find(StreamHash hash, std::size_t limit, Found& found);
  /// As Index::latest_before on the hash path, of what was found.
  static Result<std::optional<IndexEntry>> latest_before(const Found& found, LogPosition limit);

 private:
  struct Table;
  Result<bool> collect(StreamHash hash, std::size_t limit, Found& found);

  Index::State* state_;
  std::shared_ptr<const struct IndexView> view_;
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace verger::index
