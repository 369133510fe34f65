#include "engine/streams/detail/partition_sum.h"

#include <algorithm>

namespace verger::streams::detail {

void DigestSum::add_words(const std::array<std::uint64_t, 4>& words) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const auto partial = words_[i] + carry;
    carry = partial < carry ? 1 : 0;
    words_[i] = partial + words[i];
    carry += words_[i] < words[i] ? 1 : 0;
  }
}

void DigestSum::add(const Sha256Digest& digest) {
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = load_le<std::uint64_t>(digest.data() + i * sizeof(std::uint64_t));
  }
  add_words(words);
  ++count_;
}

void DigestSum::add(const DigestSum& other) {
  add_words(other.words_);
  count_ += other.count_;
}

Sha256Digest DigestSum::value() const {
  Sha256Digest value;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    store_le(value.data() + i * sizeof(std::uint64_t), words_[i]);
  }
  return value;
}

PartitionSum::PartitionSum(const EventSpill& spill, std::size_t partition, Ticks now,
                           std::uint64_t most_kept)
    : spill_(spill), partition_(partition), now_(now), kept_(spill.bytes(partition) <= most_kept) {}

Result<bool> PartitionSum::step() {
  if (segment_ < spill_.segments(partition_)) {
    const auto before = kept_ ? events_.size() : 0;
    VERGER_RETURN_IF_ERROR(spill_.read(partition_, segment_++, before, events_));
    for (const auto& event : std::span(events_).subspan(before)) {
      if (summing_) {
        add(event);
      } else {
        learn(event);
      }
    }
    return false;
  }
  if (summing_) {
    return true;
  }
  summing_ = true;
  if (!kept_) {
    segment_ = 0;
    return false;
  }
  for (const auto& event : events_) {
    add(event);
  }
  return true;
}

void PartitionSum::finish() {
  do {
    outcome_ = step();
  } while (outcome_ && !*outcome_);
}

void PartitionSum::learn(const SpilledEvent& event) {
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

bool PartitionSum::visible(const SpilledEvent& event, const Stream& own) const {
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

void PartitionSum::add(const SpilledEvent& event) {
  auto& own = streams_[event.stream];
  if (!visible(event, own)) {
    return;
  }
  if (event.number <= own.last_added) {
    repeated_.push_back(event);
    return;
  }
  own.last_added = event.number;
  sum_.add(event.digest);
}

}  // namespace verger::streams::detail
