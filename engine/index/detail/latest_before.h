#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/result.h"
#include "engine/index/entry.h"

/// The server's ways to the last entry of a stream below a position. Positions are taken to ascend
/// with the numbers, so a binary search does. Where they do not, the answer depends on which
/// entries the search looks at: these look at the same ones, in the same order. An entry that
/// `is_of_stream` refuses ends the search, and all of the hash's entries are looked at.
/// docs/formats/index.md, "Lookups".
namespace verger::index::detail {

/// Where the entries of one hash lie in a table: [first, end), descending.
struct TableRun {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t entries = 0;    ///< of the whole table
  std::uint64_t midpoints = 0;  ///< as the server has them in memory
};

/// The entries between which the search begins: those of the last midpoint above the run and of the
/// first one below it, or the table's ends.
struct SearchRange {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};
SearchRange search_range(const TableRun& run);

/// Of a hash's entries in memory or in a table: do positions strictly ascend with the numbers? Then
/// every way leads to the same entry, and no other stream's entry can change it.
template <class At>
bool positions_descend(const At& at, std::uint64_t first, std::uint64_t end) {
  for (auto i = first; i + 1 < end; ++i) {
    if (at(i).position <= at(i + 1).position) {
      return false;
    }
  }
  return true;
}

inline Result<bool> accepts(const EntryFilter& is_of_stream, const IndexEntry& entry) {
  return is_of_stream ? is_of_stream(entry) : true;
}

/// In a PTable: `at(i)` gives a Result<IndexEntry> of the table's entry `i` inside the run. Among
/// all entries the greatest position below the limit wins.
template <class At>
Result<std::optional<IndexEntry>> find_latest_in_table(const At& at, const TableRun& run,
                                                       LogPosition limit,
                                                       const EntryFilter& is_of_stream) {
  std::optional<IndexEntry> found;
  if (run.first == run.end) {
    return found;
  }
  bool collision = false;
  auto [low, high] = search_range(run);
  while (low < high && !collision) {
    const auto middle = low + (high - low) / 2;
    if (middle < run.first) {
      low = middle + 1;
    } else if (middle >= run.end) {
      high = middle - 1;
    } else {
      VERGER_TRY(const IndexEntry entry, at(middle));
      VERGER_TRY(const bool ours, accepts(is_of_stream, entry));
      collision = !ours;
      if (entry.position >= limit) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
  }
  if (!collision) {
    if (high < run.first || high >= run.end) {
      return found;
    }
    VERGER_TRY(const IndexEntry entry, at(high));
    VERGER_TRY(const bool ours, accepts(is_of_stream, entry));
    collision = !ours;
    if (!collision) {
      return entry.position < limit ? std::optional(entry) : std::nullopt;
    }
  }
  for (auto i = run.first; i < run.end; ++i) {
    VERGER_TRY(const IndexEntry entry, at(i));
    if (entry.position >= limit || (found && entry.position <= found->position)) {
      continue;
    }
    VERGER_TRY(const bool ours, accepts(is_of_stream, entry));
    if (ours) {
      found = entry;
    }
  }
  return found;
}

/// In memory: `at(i)` gives the i-th of `count` entries, ascending. Among all entries the greatest
/// number with a position below the limit wins.
template <class At>
Result<std::optional<IndexEntry>> find_latest_in_memory(const At& at, std::uint64_t count,
                                                        LogPosition limit,
                                                        const EntryFilter& is_of_stream) {
  std::optional<IndexEntry> found;
  if (count == 0) {
    return found;
  }
  VERGER_TRY(bool ours, accepts(is_of_stream, at(0)));
  if (ours && at(0).position >= limit) {
    return found;
  }
  std::uint64_t low = 0;
  auto high = count - 1;
  while (ours && low < high) {
    const auto middle = low + (high - low + 1) / 2;
    VERGER_TRY(ours, accepts(is_of_stream, at(middle)));
    if (at(middle).position < limit) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (ours) {
    VERGER_TRY(ours, accepts(is_of_stream, at(low)));
    if (ours) {
      return std::optional(at(low));
    }
  }
  for (auto i = count; i-- > 0 && !found;) {
    if (at(i).position < limit) {
      VERGER_TRY(ours, accepts(is_of_stream, at(i)));
      if (ours) {
        found = at(i);
      }
    }
  }
  return found;
}

}  // namespace verger::index::detail
