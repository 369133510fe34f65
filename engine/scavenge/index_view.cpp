#include "engine/scavenge/index_view.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace verger::scavenge {
namespace {

/// Entries of a stream in one table that are held at once; a longer stream is read piece by piece.
constexpr std::size_t kMostLoaded = 4096;

}  // namespace

IndexView::IndexView(const index::Index& index, const log::TransactionLog& log, LogPosition point)
    : index_(&index), log_(&log), point_(point), sweep_(index) {}

Result<bool> IndexView::load(const StreamHandle& stream) {
  if (stream.by_name()) {
    return false;
  }
  if (!loaded_ || *loaded_ != stream.hash) {
    loaded_.reset();
    VERGER_TRY(complete_, sweep_.find(stream.hash, kMostLoaded, found_));
    loaded_ = stream.hash;
  }
  return complete_;
}

Result<void> IndexView::forward(const StreamHandle& stream, std::int64_t from, std::int64_t count,
                                std::vector<index::IndexEntry>& out) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const auto to = from > kMax - (count - 1) ? kMax : from + count - 1;
  VERGER_TRY(const bool loaded, load(stream));
  if (loaded) {
    out.clear();
    // From the oldest table to the newest, each from its end: mostly ascending as it is.
    for (auto part = found_.parts.size(); part-- > 0;) {
      const auto begin = part == 0 ? 0 : found_.parts[part - 1].end;
      for (auto i = found_.parts[part].end; i-- > begin;) {
        const auto& entry = found_.entries[i];
        if (entry.number.value() >= from && entry.number.value() <= to && entry.position < point_) {
          out.push_back(entry);
        }
      }
    }
  } else {
    VERGER_TRY(out, index_->range_forward(stream.hash, EventNumber(from), EventNumber(to),
                                          std::numeric_limits<std::size_t>::max()));
    std::erase_if(out, [&](const index::IndexEntry& entry) { return entry.position >= point_; });
  }
  if (stream.by_name()) {
    std::vector<index::IndexEntry> own;
    for (const auto& entry : out) {
      VERGER_TRY(const bool mine, belongs(entry, stream.name));
      if (mine) {
        own.push_back(entry);
      }
    }
    out = std::move(own);
  }
  if (!std::ranges::is_sorted(out)) {
    std::ranges::sort(out);
  }
  const auto same = std::ranges::unique(out, {}, &index::IndexEntry::number);
  out.erase(same.begin(), same.end());
  return {};
}

Result<std::optional<EventNumber>> IndexView::next(const StreamHandle& stream, EventNumber number) {
  VERGER_TRY(const bool loaded, load(stream));
  if (!loaded) {
    VERGER_TRY(const auto entry, index_->next(stream.hash, number));
    return entry ? std::optional(entry->number) : std::nullopt;
  }
  for (auto part = found_.parts.size(); part-- > 0;) {
    const auto begin = part == 0 ? 0 : found_.parts[part - 1].end;
    for (auto i = found_.parts[part].end; i-- > begin;) {
      if (found_.entries[i].number > number) {
        return std::optional(found_.entries[i].number);
      }
    }
  }
  return std::optional<EventNumber>();
}

Result<EventNumber> IndexView::last_number(const StreamHandle& stream, const NameOf& name_of) {
  std::optional<std::string> name;
  const auto is_own = [&](const index::IndexEntry& entry) -> Result<bool> {
    if (stream.by_name()) {
      return belongs(entry, stream.name);
    }
    if (entry.position < point_) {
      return true;
    }
    if (!name) {
      VERGER_TRY(name, name_of());
    }
    return belongs(entry, *name);
  };
  // By reference: a copy would have to be allocated, for each of millions of streams.
  const index::EntryFilter filter = std::cref(is_own);
  VERGER_TRY(const bool loaded, load(stream));
  if (loaded) {
    VERGER_TRY(const auto last, index::EntrySweep::latest_before(found_, point_, filter));
    return last ? last->number : kNoStream;
  }
  VERGER_TRY(const auto last, index_->latest_before(stream.hash, point_, filter));
  return last ? last->number : kNoStream;
}

Result<bool> IndexView::has_none_before(StreamHash hash, std::int64_t first_kept) {
  VERGER_TRY(const bool loaded, load({.hash = hash, .name = {}}));
  if (loaded) {
    return std::ranges::none_of(found_.entries, [&](const index::IndexEntry& entry) {
      return entry.number.value() < first_kept && entry.position < point_;
    });
  }
  constexpr auto kSmallest = std::numeric_limits<std::int64_t>::min();
  if (first_kept == kSmallest) {
    return true;
  }
  VERGER_TRY(const auto entries,
             index_->range_forward(hash, EventNumber(kSmallest), EventNumber(first_kept - 1), 1));
  return entries.empty();
}

Result<bool> IndexView::belongs(const index::IndexEntry& entry, std::string_view name) {
  auto record = log_->read(entry.position, buffer_);
  if (!record) {
    if (record.error().code == Errc::kNotFound) {
      return false;
    }
    return record.error();
  }
  const auto* prepare = record->prepare();
  return prepare != nullptr && prepare->stream == name;
}

Result<bool> IndexView::is_tombstone(LogPosition position) {
  auto record = log_->read(position, buffer_);
  if (!record) {
    if (record.error().code == Errc::kNotFound) {
      return false;
    }
    return record.error();
  }
  const auto* prepare = record->prepare();
  return prepare != nullptr && prepare->has(log::prepare_flags::kStreamDelete);
}

}  // namespace verger::scavenge
