#include "engine/index/entry_sweep.h"

#include <algorithm>
#include <limits>
#include <span>

#include "engine/index/detail/entry_reader.h"
#include "engine/index/detail/index_state.h"
#include "engine/index/detail/latest_before.h"
#include "engine/index/detail/ptable_format.h"

namespace verger::index {
namespace {

/// Entries around a place that was searched for; doubled as long as the next one lies just before.
constexpr std::uint64_t kFirstWindow = 256;
constexpr std::uint64_t kLargestWindow = 8192;

std::uint64_t midpoints_of(const PTable& table, int cache_depth) {
  detail::PTableLayout layout{.version = table.version(), .count = table.count()};
  if (layout.version == detail::kNewestPTableVersion) {
    // What the file has beyond its other parts.
    const auto end = layout.midpoint_offset(0) + detail::kPTableFooterSize + detail::kPTableMd5Size;
    layout.midpoint_count = (table.file_size() - end) / detail::kMidpointSize;
  }
  return detail::search_midpoints(layout, cache_depth);
}

Result<std::optional<IndexEntry>> latest_in(const EntrySweep::Part& part,
                                            std::span<const IndexEntry> entries, LogPosition limit,
                                            const EntryFilter& is_of_stream) {
  if (detail::positions_descend([&](std::uint64_t i) { return entries[i]; }, 0, entries.size())) {
    const auto last = std::ranges::partition_point(
        entries, [limit](const IndexEntry& entry) { return entry.position >= limit; });
    return last == entries.end() ? std::nullopt : std::optional(*last);
  }
  if (!part.in_table) {
    const auto ascending = [&](std::uint64_t i) { return entries[entries.size() - 1 - i]; };
    return detail::find_latest_in_memory(ascending, entries.size(), limit, is_of_stream);
  }
  const detail::TableRun run{.first = part.first,
                             .end = part.first + entries.size(),
                             .entries = part.table_entries,
                             .midpoints = part.midpoints};
  const auto at = [&](std::uint64_t i) -> Result<IndexEntry> { return entries[i - part.first]; };
  return detail::find_latest_in_table(at, run, limit, is_of_stream);
}

}  // namespace

/// A window of one table's entries that moves towards its front.
struct EntrySweep::Table {
  Table(std::shared_ptr<const PTable> opened, int cache_depth)
      : table(std::move(opened)), midpoints(midpoints_of(*table, cache_depth)) {}

  std::shared_ptr<const PTable> table;
  std::uint64_t midpoints;
  std::uint64_t start = 0;  ///< number of the window's first entry
  std::vector<IndexEntry> window;
  std::vector<IndexEntry> piece;
  std::uint64_t step = kFirstWindow;

  /// Puts the entries before the window in front of it, and forgets those at or after `keep`.
  Result<void> extend(std::size_t keep) {
    const auto count = std::min(step, start);
    VERGER_RETURN_IF_ERROR(table->read(start - count, count, piece));
    if (!window.empty() && !piece.empty() && window.front() > piece.back()) {
      return detail::out_of_order(table->path(), table->entry_offset(start));
    }
    piece.insert(piece.end(), window.begin(), window.begin() + static_cast<std::ptrdiff_t>(keep));
    window.swap(piece);
    start -= count;
    step = std::min(step * 2, kLargestWindow);
    return {};
  }

  /// Puts the window around the end of the hash's entries.
  Result<void> search(StreamHash hash) {
    VERGER_TRY(const auto end, table->first_below(hash));
    const auto last = std::min(end + 1, table->count());
    step = kFirstWindow;
    start = last - std::min(last, step);
    return table->read(start, last - start, window);
  }

  /// `first` becomes the number of the run's first entry.
  Result<bool> find(StreamHash hash, std::size_t limit, std::vector<IndexEntry>& out,
                    std::uint64_t& first) {
    if (table->count() == 0) {
      return true;
    }
    const auto end_reached = [&] { return start + window.size() == table->count(); };
    const bool before = !window.empty() && hash > window.front().hash;
    if (before && start == 0) {
      return true;
    }
    // The run of the hash ends inside the window, or where the table ends.
    const bool inside = !window.empty() && !before && (end_reached() || hash > window.back().hash);
    if (before) {
      VERGER_RETURN_IF_ERROR(extend(1));
      if (start > 0 && hash > window.front().hash) {
        if (!table->may_contain(hash)) {
          return true;
        }
        VERGER_RETURN_IF_ERROR(search(hash));
      }
    } else if (!inside) {
      if (!table->may_contain(hash)) {
        return true;
      }
      VERGER_RETURN_IF_ERROR(search(hash));
    }
    for (;;) {
      const auto run = std::ranges::equal_range(window, hash, std::greater{}, &IndexEntry::hash);
      if (run.size() > limit) {
        return false;
      }
      if (run.empty() || run.begin() != window.begin() || start == 0) {
        out.insert(out.end(), run.begin(), run.end());
        first = start + static_cast<std::uint64_t>(run.begin() - window.begin());
        return true;
      }
      VERGER_RETURN_IF_ERROR(extend(run.size()));
    }
  }
};

EntrySweep::EntrySweep(const Index& index) : state_(index.state_.get()), view_(state_->view()) {
  for (const auto& table : view_->newest_first) {
    tables_.push_back(std::make_unique<Table>(table, index.options().cache_depth));
  }
}

EntrySweep::~EntrySweep() = default;

Result<bool> EntrySweep::find(StreamHash hash, std::size_t limit, Found& found) {
  auto collected = collect(hash, limit, found);
  return collected ? collected : state_->noted(std::move(collected).error());
}

Result<bool> EntrySweep::collect(StreamHash hash, std::size_t limit, Found& found) {
  found.entries.clear();
  found.parts.clear();
  view_->memory->range(hash, detail::kSmallestNumber, detail::kGreatestNumber,
                       std::numeric_limits<std::size_t>::max(), found.entries);
  if (found.entries.size() > limit) {
    return false;
  }
  found.parts.push_back({.end = found.entries.size()});
  for (const auto& table : tables_) {
    if (table->table->version() == 1) {
      return false;
    }
    auto& part = found.parts.emplace_back();
    part.in_table = true;
    part.table_entries = table->table->count();
    part.midpoints = table->midpoints;
    VERGER_TRY(const bool complete, table->find(hash, limit, found.entries, part.first));
    if (!complete) {
      return false;
    }
    part.end = found.entries.size();
  }
  return true;
}

Result<std::optional<IndexEntry>> EntrySweep::latest_before(const Found& found, LogPosition limit,
                                                            const EntryFilter& is_of_stream) {
  std::size_t begin = 0;
  for (const auto& part : found.parts) {
    const auto entries = std::span(found.entries).subspan(begin, part.end - begin);
    begin = part.end;
    VERGER_TRY(const auto last, latest_in(part, entries, limit, is_of_stream));
    if (last) {
      return last;
    }
  }
  return std::optional<IndexEntry>();
}

}  // namespace verger::index
