#include "engine/verify/detail/table_entries.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::verify::detail {

std::span<const index::IndexEntry> those_above(std::span<const index::IndexEntry> entries,
                                               const index::IndexEntry& other) {
  const auto end = std::ranges::partition_point(
      entries, [&](const index::IndexEntry& entry) { return entry > other; });
  return entries.first(static_cast<std::size_t>(end - entries.begin()));
}

TableEntries::TableEntries(const std::vector<index::TableSlot>& slots) {
  sources_.reserve(slots.size());
  for (const auto& slot : slots) {
    sources_.push_back(Source{.table = slot.table, .scanner = index::PTableScanner(slot.table)});
  }
}

TableEntries::Source* TableEntries::advance(Findings& findings) {
  if (current_ != nullptr) {
    step(*current_, findings);
  } else {
    for (auto& source : sources_) {
      step(source, findings);
    }
  }
  current_ = nullptr;
  for (auto& source : sources_) {
    if (source.entry && (current_ == nullptr || *current_->entry < *source.entry)) {
      current_ = &source;
    }
  }
  return current_;
}

std::span<const index::IndexEntry> TableEntries::held(const Source& current) const {
  auto held = current.scanner.held();
  for (const auto& source : sources_) {
    if (&source != &current && source.entry) {
      held = those_above(held, *source.entry);
    }
  }
  return held;
}

void TableEntries::skip(Source& current, std::span<const index::IndexEntry> entries) {
  current.scanner.skip(entries.size());
  current.number += entries.size();
  current.entry = entries.back();
}

void TableEntries::step(Source& source, Findings& findings) {
  const auto previous = source.entry;
  source.number += source.first ? 0 : 1;
  source.first = false;
  auto entry = source.scanner.next();
  if (!entry) {
    findings.damage(source.table->path(), source.table->entry_offset(source.number),
                    entry.error().message);
    source.entry.reset();
    return;
  }
  source.entry = *entry == nullptr ? std::nullopt : std::optional(**entry);
  if (previous && source.entry && *previous < *source.entry) {
    findings.damage(source.table->path(), source.table->entry_offset(source.number),
                    fmt::format("entry {} is greater than the one before it", source.number));
  }
}

}  // namespace verger::verify::detail
