#include "engine/scavenge/stream_walker.h"

#include <fmt/format.h>
#include <limits>

namespace verger::scavenge {
namespace {

constexpr std::int64_t kSliceSize = 8192;
constexpr auto kLastNumber = std::numeric_limits<std::int64_t>::max();
/// Number of a tombstone in the index of old databases.
constexpr EventNumber kOldTombstone{std::numeric_limits<std::int32_t>::max()};

}  // namespace

StreamWalker::StreamWalker(const index::Index& index, const log::TransactionLog& log,
                           const ScavengePoint& point, ScavengeState& state)
    : log_(log),
      effective_now_(point.effective_now),
      state_(state),
      index_(index, log, point.position) {}

Result<void> StreamWalker::start(const OriginalRow& row) {
  row_ = row;
  VERGER_TRY(last_, index_.last_number(row_.handle, [this]() -> Result<std::string> {
    return state_.hash_user(row_.handle.hash);
  }));
  cutoff_.reset();
  if (row_.data.max_age_seconds) {
    cutoff_ = cutoff_of(effective_now_, *row_.data.max_age_seconds);
  }
  slice_ = 0;
  walk_ = {};
  return {};
}

Result<bool> StreamWalker::step(const Visitor& visit) {
  VERGER_RETURN_IF_ERROR(index_.forward(row_.handle, slice_, kSliceSize, entries_));
  const auto end = slice_ > kLastNumber - kSliceSize ? kLastNumber : slice_ + kSliceSize - 1;
  bool finished = false;
  if (entries_.empty()) {
    VERGER_TRY(const auto next, index_.next(row_.handle, EventNumber(end)));
    finished = !next;
    slice_ = next ? next->value() : slice_;
  } else {
    for (const auto& entry : entries_) {
      VERGER_TRY(auto verdict, judge(entry));
      verdict.weight = walk_.add(entry.number, verdict.decision);
      if (visit) {
        visit(verdict);
      }
      if (walk_.stopped()) {
        return true;
      }
    }
    finished = end == kLastNumber;
    slice_ = finished ? slice_ : end + 1;
  }
  if (finished && walk_.started()) {
    return Error{Errc::kCorruption,
                 fmt::format("the index has no entry for the last event ({}) of the stream with "
                             "hash {:016x}: rebuild the index",
                             last_, row_.handle.hash.value())};
  }
  return finished;
}

Result<bool> StreamWalker::keeps_entries_from(DiscardPoint discard) {
  return index_.has_none_before(row_.handle.hash, discard.first_kept());
}

Result<StreamWalker::Verdict> StreamWalker::judge(const index::IndexEntry& entry) {
  using enum EventDecision;
  const auto& stream = row_.data;
  const auto verdict = [&](EventDecision decision, EventRule rule) {
    return Verdict{.entry = entry, .decision = decision, .rule = rule, .weight = 0};
  };
  if (entry.number >= last_) {
    return verdict(kKeep, EventRule::kLast);
  }
  if (stream.tombstoned) {
    if (entry.number == kOldTombstone) {
      VERGER_TRY(const bool tombstone, index_.is_tombstone(entry.position));
      if (tombstone) {
        return verdict(kKeep, EventRule::kOldTombstone);
      }
    }
    return verdict(kDiscard, EventRule::kDeleted);
  }
  if (discarded_by_number(stream, entry.number, last_)) {
    const bool truncated = stream.truncate_before && entry.number.value() < *stream.truncate_before;
    return verdict(kDiscard, truncated ? EventRule::kTruncateBefore : EventRule::kMaxCount);
  }
  if (!cutoff_) {
    return verdict(kKeep, EventRule::kNoAge);
  }
  VERGER_TRY(const auto* range, range_of(log_.chunk_of(entry.position).value()));
  const auto decision = decide_by_age(*range, *cutoff_);
  switch (decision) {
    case kKeep:
      return verdict(decision, EventRule::kFresh);
    case kDiscard:
      return verdict(decision, EventRule::kExpired);
    case kMaybeDiscard:
      return verdict(decision, EventRule::kMixedAges);
    case kAlreadyDiscarded:
      return verdict(decision, EventRule::kEmptiedChunk);
  }
  return verdict(decision, EventRule::kFresh);
}

Result<const std::optional<TimeRange>*> StreamWalker::range_of(std::int32_t chunk) {
  auto found = ranges_.find(chunk);
  if (found == ranges_.end()) {
    VERGER_TRY(auto range, state_.time_range(chunk));
    found = ranges_.emplace(chunk, range).first;
  }
  return &found->second;
}

}  // namespace verger::scavenge
