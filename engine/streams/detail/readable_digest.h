#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/digest.h"
#include "engine/streams/detail/described_event.h"
#include "engine/streams/detail/event_spill.h"
#include "engine/streams/event_store.h"

namespace verger::streams::detail {

/// The digest over what readers see of a stretch of the log, independent of the order in which
/// events are handed in: the sum, modulo 2^256, of the SHA-256 of every visible event.
///
/// First add() every event, in the order of the log; then settle() until it is done. What decides
/// whether an event is visible may come after it, so of each event a few bytes are kept, apart by
/// streams (EventSpill); settling takes one part of the streams after the other. Memory is bounded
/// for any number of streams and events (docs/decisions/0015-digests-in-one-pass.md).
class ReadableDigest {
 public:
  /// Says where the readable event of a number lies, when numbers repeat in a stream; by the
  /// position of an event of that stream.
  using Locator =
      std::function<Result<std::optional<LogPosition>>(LogPosition of_stream, EventNumber)>;
  ReadableDigest(const DigestOptions& options, Ticks now, Locator locate);

  /// They have their digests and the keys of their streams. Errors: those of EventSpill::add.
  Result<void> add(std::span<const DescribedEvent> events);
  /// Does a piece of what is left; true: it is done. Errors: kIo, the locator's.
  Result<bool> settle();
  std::uint64_t count() const { return count_; }
  Sha256Digest value() const;
  [[nodiscard]] std::uint64_t bytes_on_disk() const { return spill_.bytes_on_disk(); }

 private:
  struct Stream {
    EventNumber last{-1};
    EventNumber last_added{-1};
    // From the newest metadata event.
    EventNumber metadata_number{-1};
    SpilledLimits limits;
  };
  struct KeyHash {
    std::size_t operator()(const StreamKey& key) const {
      return load_le<std::uint64_t>(key.data() + 8);
    }
  };
  void learn(const SpilledEvent& event);
  [[nodiscard]] bool visible(const SpilledEvent& event, const Stream& own) const;
  Result<void> sum(const SpilledEvent& event);

  Ticks now_;
  Locator locate_;
  EventSpill spill_;
  // While settling: the part, whether its events are summed or only learnt about, and how far.
  std::size_t partition_ = 0;
  bool summing_ = false;
  std::size_t segment_ = 0;
  std::vector<SpilledEvent> events_;
  std::unordered_map<StreamKey, Stream, KeyHash> streams_;
  std::array<std::uint64_t, 4> sum_{};
  std::uint64_t count_ = 0;
};

}  // namespace verger::streams::detail
