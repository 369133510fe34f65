#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/result.h"
#include "engine/index/entry.h"

namespace verger::index::detail {

/// The server's way to the last entry of a stream below `limit` among the entries [low, end), which
/// descend and share one hash: `at(i)` gives a Result<IndexEntry>. Positions are taken to descend
/// with the numbers, so a binary search does; when it meets an entry of another stream, all of them
/// are looked at and the greatest position below the limit wins.
template <class At>
Result<std::optional<IndexEntry>> find_latest_before(const At& at, std::uint64_t low,
                                                     std::uint64_t end, LogPosition limit,
                                                     const EntryFilter& is_of_stream) {
  const auto begin = low;
  bool collision = false;
  auto high = end;
  std::optional<IndexEntry> candidate;
  while (low < high && !collision) {
    const auto middle = low + (high - low) / 2;
    VERGER_TRY(const IndexEntry entry, at(middle));
    if (is_of_stream) {
      VERGER_TRY(const bool ours, is_of_stream(entry));
      collision = !ours;
    }
    if (entry.position < limit) {
      candidate = entry;
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (!collision) {
    return candidate;
  }
  candidate.reset();
  for (auto i = begin; i < end; ++i) {
    VERGER_TRY(const IndexEntry entry, at(i));
    if (entry.position >= limit || (candidate && entry.position <= candidate->position)) {
      continue;
    }
    VERGER_TRY(const bool ours, is_of_stream(entry));
    if (ours) {
      candidate = entry;
    }
  }
  return candidate;
}

}  // namespace verger::index::detail
