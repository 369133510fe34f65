#include "engine/streams/detail/readable_digest.h"

#include <algorithm>
#include <utility>

namespace verger::streams::detail {
namespace {

/// How long before an event is added its partition's memory is fetched.
constexpr std::size_t kAhead = 6;

}  // namespace

ReadableDigest::ReadableDigest(const DigestOptions& options, Ticks now, Locator locate)
    : now_(now),
      locate_(std::move(locate)),
      in_background_(options.hash_in_background),
      spill_(options) {}

Result<void> ReadableDigest::add(std::span<DescribedEvent> events, ByteView messages) {
  keys_.find(events, messages);
  for (std::size_t n = 0; n < events.size(); ++n) {
    if (n + kAhead < events.size()) {
      spill_.expect(events[n + kAhead].partition);
    }
    VERGER_RETURN_IF_ERROR(spill_.add(events[n].partition, events[n].kept));
  }
  return {};
}

std::unique_ptr<PartitionSum> ReadableDigest::next_part() {
  return next_ == EventSpill::kPartitions ? nullptr
                                          : std::make_unique<PartitionSum>(spill_, next_++, now_);
}

Result<bool> ReadableDigest::settle() {
  if (part_ == nullptr) {
    part_ = next_part();
  }
  if (in_background_ && !beside_) {
    beside_.emplace([](PartitionSum& part) { part.finish(); });
  }
  if (beside_ && beside_->size() == 0) {
    if (auto part = next_part()) {
      beside_->give(std::move(part));
    }
  }
  if (part_ != nullptr) {
    VERGER_TRY(const bool summed, part_->step());
    if (summed) {
      VERGER_RETURN_IF_ERROR(take(*part_));
      part_.reset();
    }
  }
  if (beside_) {
    if (const auto part = part_ == nullptr && next_ == EventSpill::kPartitions
                              ? beside_->take()
                              : beside_->take_done()) {
      VERGER_RETURN_IF_ERROR(part->outcome());
      VERGER_RETURN_IF_ERROR(take(*part));
    }
  }
  return part_ == nullptr && next_ == EventSpill::kPartitions && (!beside_ || beside_->size() == 0);
}

Result<void> ReadableDigest::take(const PartitionSum& part) {
  sum_.add(part.sum());
  for (const auto& event : part.repeated()) {
    VERGER_TRY(const auto position, locate_(event.position, event.number));
    if (position == event.position) {
      sum_.add(event.digest);
    }
  }
  spill_.drop(part.partition());
  return {};
}

}  // namespace verger::streams::detail
