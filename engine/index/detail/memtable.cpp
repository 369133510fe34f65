#include "engine/index/detail/memtable.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "engine/index/detail/latest_before.h"
#include "engine/index/detail/ptable_format.h"

namespace verger::index::detail {
namespace {

/// A run below this size accepts every entry.
constexpr std::size_t kSmallRun = 256;

Memtable::Run merge(const Memtable::Run& a, const Memtable::Run& b) {
  Memtable::Run merged;
  merged.reserve(a.size() + b.size());
  std::ranges::merge(a, b, std::back_inserter(merged), std::greater{});
  return merged;
}

/// The part of `run` with this hash and a number in [from, to].
std::span<const IndexEntry> slice(const Memtable::Run& run, StreamHash hash, EventNumber from,
                                  EventNumber to) {
  const auto begin = std::partition_point(run.begin(), run.end(), [&](const IndexEntry& e) {
    return e > IndexEntry{hash, to, kGreatestPosition};
  });
  const auto end = std::partition_point(begin, run.end(), [&](const IndexEntry& e) {
    return e >= IndexEntry{hash, from, kSmallestPosition};
  });
  return {begin, end};
}

}  // namespace

std::shared_ptr<const Memtable> Memtable::with(std::span<const IndexEntry> entries) const {
  auto result = std::make_shared<Memtable>(*this);
  result->count_ += entries.size();
  auto& runs = result->runs_;
  Run added(entries.begin(), entries.end());
  std::ranges::sort(added, std::greater{});
  while (!runs.empty() &&
         (runs.back()->size() <= added.size() || runs.back()->size() < kSmallRun)) {
    added = merge(*runs.back(), added);
    runs.pop_back();
  }
  if (!added.empty()) {
    runs.push_back(std::make_shared<const Run>(std::move(added)));
  }
  return result;
}

std::shared_ptr<const Memtable> Memtable::filtered(
    const std::function<bool(const IndexEntry&)>& keep) const {
  auto result = std::make_shared<Memtable>();
  for (const auto& run : runs_) {
    Run kept;
    std::ranges::copy_if(*run, std::back_inserter(kept), keep);
    result->count_ += kept.size();
    if (!kept.empty()) {
      result->runs_.push_back(std::make_shared<const Run>(std::move(kept)));
    }
  }
  return result;
}

bool Memtable::may_contain(StreamHash hash) const {
  return std::ranges::any_of(runs_, [&](const auto& run) {
    return !slice(*run, hash, kSmallestNumber, kGreatestNumber).empty();
  });
}

Memtable::Run Memtable::sorted() const {
  Run all;
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    all = merge(**run, all);
  }
  return all;
}

void Memtable::range(StreamHash hash, EventNumber from, EventNumber to, std::size_t limit,
                     Run& out) const {
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  for (const auto& run : runs_) {
    const auto part = slice(*run, hash, from, to);
    const auto taken = part.first(std::min(limit, part.size()));
    out.insert(out.end(), taken.begin(), taken.end());
  }
  std::sort(out.begin() + first, out.end(), std::greater{});
  out.resize(static_cast<std::size_t>(first) +
             std::min(out.size() - static_cast<std::size_t>(first), limit));
}

void Memtable::range_forward(StreamHash hash, EventNumber from, EventNumber to, std::size_t limit,
                             Run& out) const {
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  for (const auto& run : runs_) {
    const auto part = slice(*run, hash, from, to);
    const auto taken = part.last(std::min(limit, part.size()));
    out.insert(out.end(), taken.rbegin(), taken.rend());
  }
  std::sort(out.begin() + first, out.end(), std::less{});
  out.resize(static_cast<std::size_t>(first) +
             std::min(out.size() - static_cast<std::size_t>(first), limit));
}

std::optional<IndexEntry> Memtable::latest(StreamHash hash) const {
  Run found;
  range(hash, kSmallestNumber, kGreatestNumber, 1, found);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::optional<IndexEntry> Memtable::previous(StreamHash hash, EventNumber number) const {
  Run found;
  if (number > kSmallestNumber) {
    range(hash, kSmallestNumber, EventNumber(number.value() - 1), 1, found);
  }
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::optional<IndexEntry> Memtable::next(StreamHash hash, EventNumber number) const {
  Run found;
  if (number < kGreatestNumber) {
    range_forward(hash, EventNumber(number.value() + 1), kGreatestNumber, 1, found);
  }
  return found.empty() ? std::nullopt : std::optional(found.front());
}

Result<std::optional<IndexEntry>> Memtable::latest_before(StreamHash hash, LogPosition limit,
                                                          const EntryFilter& is_of_stream) const {
  Run entries;
  range_forward(hash, kSmallestNumber, kGreatestNumber, count_, entries);
  const auto at = [&](std::uint64_t n) { return entries[n]; };
  return find_latest_in_memory(at, entries.size(), limit, is_of_stream);
}

}  // namespace verger::index::detail
