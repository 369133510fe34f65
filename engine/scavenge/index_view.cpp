#include "engine/scavenge/index_view.h"

#include <algorithm>
#include <limits>

namespace verger::scavenge {

IndexView::IndexView(const index::Index& index, const log::TransactionLog& log, LogPosition point)
    : index_(&index), log_(&log), point_(point) {}

Result<void> IndexView::forward(const StreamHandle& stream, std::int64_t from, std::int64_t count,
                                std::vector<index::IndexEntry>& out) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const auto to = from > kMax - (count - 1) ? kMax : from + count - 1;
  VERGER_TRY(out, index_->range_forward(stream.hash, EventNumber(from), EventNumber(to),
                                        std::numeric_limits<std::size_t>::max()));
  std::erase_if(out, [&](const index::IndexEntry& entry) { return entry.position >= point_; });
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
  std::ranges::sort(out);
  const auto same = std::ranges::unique(out, {}, &index::IndexEntry::number);
  out.erase(same.begin(), same.end());
  return {};
}

Result<std::optional<EventNumber>> IndexView::next(const StreamHandle& stream,
                                                   EventNumber number) const {
  VERGER_TRY(const auto entry, index_->next(stream.hash, number));
  return entry ? std::optional(entry->number) : std::nullopt;
}

Result<EventNumber> IndexView::last_number(const StreamHandle& stream) {
  index::Index::EntryFilter filter;
  if (stream.by_name()) {
    filter = [this, &stream](const index::IndexEntry& entry) {
      return belongs(entry, stream.name);
    };
  }
  VERGER_TRY(const auto last, index_->latest_before(stream.hash, point_, filter));
  return last ? last->number : kNoStream;
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
