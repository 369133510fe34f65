#include "engine/streams/detail/readable_digest.h"

#include <algorithm>
#include <utility>

namespace verger::streams::detail {
namespace {

/// How long before an event is added its partition's memory is fetched.
constexpr std::size_t kAhead = 6;

}  // namespace

ReadableDigest::ReadableDigest(const DigestOptions& options, Ticks now, Locator locate)
    : now_(now), locate_(std::move(locate)), spill_(options) {}

Result<void> ReadableDigest::add(std::span<const DescribedEvent> events) {
  for (std::size_t n = 0; n < events.size(); ++n) {
    if (n + kAhead < events.size()) {
      spill_.expect(events[n + kAhead].partition);
    }
    VERGER_RETURN_IF_ERROR(spill_.add(events[n].partition, events[n].kept));
  }
  return {};
}

Result<bool> ReadableDigest::settle() {
  if (partition_ == EventSpill::kPartitions) {
    return true;
  }
  if (segment_ < spill_.segments(partition_)) {
    VERGER_RETURN_IF_ERROR(spill_.read(partition_, segment_, events_));
    for (const auto& event : events_) {
      if (summing_) {
        VERGER_RETURN_IF_ERROR(sum(event));
      } else {
        learn(event);
      }
    }
    ++segment_;
    return false;
  }
  segment_ = 0;
  if (summing_) {
    spill_.drop(partition_);
    streams_.clear();
    ++partition_;
  }
  summing_ = !summing_;
  return partition_ == EventSpill::kPartitions;
}

void ReadableDigest::learn(const SpilledEvent& event) {
  auto& own = streams_[event.stream];
  own.last = std::max(own.last, event.number);
  if (event.originals.empty()) {
    return;
  }
  auto& original = streams_[event.originals.front()];
  if (event.number <= original.metadata_number) {
    return;  // of repeated numbers the first one counts
  }
  original.metadata_number = event.number;
  original.limits = event.limits;
}

bool ReadableDigest::visible(const SpilledEvent& event, const Stream& own) const {
  if (own.last == kDeletedStream) {
    return false;
  }
  if (!event.originals.empty()) {
    for (const auto& original : event.originals) {
      const auto found = streams_.find(original);
      if (found != streams_.end() && found->second.last == kDeletedStream) {
        return false;
      }
    }
    return event.number == own.last;
  }
  const auto& limits = own.limits;
  if (limits.truncate_before == kDeletedStream.value() ||
      event.number.value() < limits.truncate_before) {
    return false;
  }
  if (limits.max_count > 0 && event.number.value() <= own.last.value() - limits.max_count) {
    return false;
  }
  return limits.max_age_seconds == 0 || limits.max_age_seconds > now_.value() / kTicksPerSecond ||
         event.timestamp.value() >= now_.value() - limits.max_age_seconds * kTicksPerSecond;
}

Result<void> ReadableDigest::sum(const SpilledEvent& event) {
  auto& own = streams_[event.stream];
  if (!visible(event, own)) {
    return {};
  }
  if (event.number <= own.last_added) {
    VERGER_TRY(const auto position, locate_(event.position, event.number));
    if (position != event.position) {
      return {};
    }
  } else {
    own.last_added = event.number;
  }
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const auto word = load_le<std::uint64_t>(event.digest.data() + i * 8);
    const auto partial = sum_[i] + carry;
    carry = partial < carry ? 1 : 0;
    sum_[i] = partial + word;
    carry += sum_[i] < word ? 1 : 0;
  }
  ++count_;
  return {};
}

Sha256Digest ReadableDigest::value() const {
  Sha256Digest value;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    store_le(value.data() + i * 8, sum_[i]);
  }
  return value;
}

}  // namespace verger::streams::detail
