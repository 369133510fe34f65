#include "engine/scavenge/rules.h"

#include "engine/base/assert.h"

namespace verger::scavenge {

Ticks cutoff_of(Ticks effective_now, std::int64_t max_age_seconds) {
  if (max_age_seconds > effective_now.value() / kTicksPerSecond) {
    return Ticks(0);
  }
  return Ticks(effective_now.value() - max_age_seconds * kTicksPerSecond);
}

StreamStatus status_after_calculation(const OriginalData& stream, EventNumber last) {
  if (stream.tombstoned) {
    return StreamStatus::kArchived;
  }
  if (stream.max_age_seconds || stream.max_count) {
    return StreamStatus::kActive;
  }
  const bool unspent = stream.truncate_before &&
                       *stream.truncate_before != kDeletedStream.value() &&
                       last.value() < *stream.truncate_before;
  return unspent ? StreamStatus::kActive : StreamStatus::kSpent;
}

bool discarded_by_number(const OriginalData& stream, EventNumber number, EventNumber last) {
  if (stream.truncate_before && number.value() < *stream.truncate_before) {
    return true;
  }
  // last - max_count, which cannot overflow: max_count > 0 and last >= -1.
  return stream.max_count && number.value() <= last.value() - *stream.max_count;
}

std::optional<RemovalRule> rule_of_discard(const OriginalData& stream) {
  const auto first_kept = stream.discard.first_kept();
  if (stream.truncate_before) {
    if (first_kept > *stream.truncate_before) {
      return std::nullopt;
    }
    return *stream.truncate_before == kDeletedStream.value() ? RemovalRule::kSoftDeleted
                                                             : RemovalRule::kTruncateBefore;
  }
  if (stream.max_count) {
    const bool is_all = !stream.max_age_seconds &&
                        discarded_by_number(stream, EventNumber(first_kept - 1), kDeletedStream);
    return is_all ? std::optional(RemovalRule::kMaxCount) : std::nullopt;
  }
  return stream.max_age_seconds ? RemovalRule::kMaxAge : RemovalRule::kEarlierScavenge;
}

EventDecision decide_by_age(const std::optional<TimeRange>& range, Ticks cutoff) {
  if (!range) {
    return EventDecision::kAlreadyDiscarded;  // the chunk was emptied, the index still points there
  }
  if (cutoff <= range->min) {
    return EventDecision::kKeep;
  }
  return range->max < cutoff ? EventDecision::kDiscard : EventDecision::kMaybeDiscard;
}

int StreamWalk::add(EventNumber number, EventDecision decision) {
  VERGER_ASSERT(!stopped_);
  if (!started_) {
    started_ = true;
    discard_ = DiscardPoint::before(number);
    maybe_ = discard_;
  }
  switch (decision) {
    case EventDecision::kDiscard:
      discard_ = DiscardPoint::including(number);
      all_gone_ = true;
      return 2;
    case EventDecision::kMaybeDiscard:
      maybe_ = DiscardPoint::including(number);
      all_gone_ = false;
      return 1;
    case EventDecision::kAlreadyDiscarded:
      if (all_gone_) {
        discard_ = DiscardPoint::including(number);
      }
      return 0;
    case EventDecision::kKeep:
      stopped_ = true;
      maybe_ = either(maybe_, discard_);
      return 0;
  }
  return 0;
}

bool keeps_prepare(const log::Prepare& prepare, bool is_metastream, const StreamLimits& limits,
                   const RunRules& rules) {
  namespace flags = log::prepare_flags;
  if (prepare.position >= rules.point) {
    return true;
  }
  if (!prepare.has(flags::kIsCommitted)) {
    // Explicit transactions are never thinned.
    if (!limits.tombstoned) {
      return true;
    }
    if (rules.unsafe_ignore_hard_delete) {
      return false;
    }
    return prepare.has(flags::kStreamDelete | flags::kTransactionBegin);
  }
  if (limits.tombstoned && (rules.unsafe_ignore_hard_delete || is_metastream)) {
    return false;
  }
  const auto number = prepare.event_number();
  if (limits.discard.discards(number)) {
    return false;
  }
  if (!limits.maybe.discards(number) || !limits.max_age_seconds) {
    return true;
  }
  return prepare.timestamp >= cutoff_of(rules.effective_now, *limits.max_age_seconds);
}

bool asks_for_number(const log::Prepare& prepare, bool is_metastream, const StreamLimits& limits,
                     const RunRules& rules) {
  const bool goes = limits.tombstoned && (rules.unsafe_ignore_hard_delete || is_metastream);
  return prepare.position < rules.point && prepare.has(log::prepare_flags::kIsCommitted) && !goes;
}

bool keeps_entry(const index::IndexEntry& entry, const StreamLimits& limits,
                 const RunRules& rules) {
  if (entry.position >= rules.point) {
    return true;
  }
  if (limits.tombstoned && (rules.unsafe_ignore_hard_delete || limits.metastream)) {
    return false;
  }
  return !limits.discard.discards(entry.number);
}

}  // namespace verger::scavenge
