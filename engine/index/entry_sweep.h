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

  /// The entries of one hash in memory or in one table, descending, and where they lie there.
  struct Part {
    std::size_t end = 0;  ///< in Found::entries; it begins where the part before it ends
    bool in_table = false;
    std::uint64_t first = 0;          ///< number of its first entry in the table
    std::uint64_t table_entries = 0;  ///< of all streams
    std::uint64_t midpoints = 0;      ///< of the table
  };
  /// The entries of one hash, as they lie.
  struct Found {
    std::vector<IndexEntry> entries;
    std::vector<Part> parts;  ///< the memory's, then the tables', newest to oldest
  };
  /// False when there are more than `limit` of them in one part, or a table is of version 1: then
  /// the stream is to be looked up in the Index. Errors: kCorruption (order), kIo.
  Result<bool> find(StreamHash hash, std::size_t limit, Found& found);
  /// As Index::latest_before, of what was found. `is_of_stream` has to accept every entry below
  /// `limit`; it is only called where the order of positions leaves a doubt.
  static Result<std::optional<IndexEntry>> latest_before(const Found& found, LogPosition limit,
                                                         const EntryFilter& is_of_stream);

 private:
  struct Table;
  Result<bool> collect(StreamHash hash, std::size_t limit, Found& found);

  Index::State* state_;
  std::shared_ptr<const struct IndexView> view_;
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace verger::index
