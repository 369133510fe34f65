#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "engine/base/background_stage.h"
#include "engine/base/digest.h"
#include "engine/streams/detail/described_event.h"
#include "engine/streams/detail/event_spill.h"
#include "engine/streams/detail/partition_sum.h"
#include "engine/streams/detail/stream_keys.h"
#include "engine/streams/event_store.h"

namespace verger::streams::detail {

/// The digest over what readers see of a stretch of the log, independent of the order in which
/// events are handed in: the sum, modulo 2^256, of the SHA-256 of every visible event.
///
/// First add() every event, in the order of the log; then settle() until it is done. What decides
/// whether an event is visible may come after it, so of each event a few bytes are kept, apart by
/// streams (EventSpill); settling takes one part of the streams after the other, or two side by
/// side where a thread may work in the background. Memory is bounded for any number of streams and
/// events (docs/decisions/0015-digests-in-one-pass.md).
class ReadableDigest {
 public:
  /// Says where the readable event of a number lies, when numbers repeat in a stream; by the
  /// position of an event of that stream.
  using Locator =
      std::function<Result<std::optional<LogPosition>>(LogPosition of_stream, EventNumber)>;
  ReadableDigest(const DigestOptions& options, Ticks now, Locator locate);

  /// They have their digests; their messages follow each other in `messages`. Errors: those of
  /// EventSpill::add.
  Result<void> add(std::span<DescribedEvent> events, ByteView messages);
  /// Does a piece of what is left; true: it is done. Errors: kIo, the locator's.
  Result<bool> settle();
  std::uint64_t count() const { return sum_.count(); }
  Sha256Digest value() const { return sum_.value(); }
  [[nodiscard]] std::uint64_t bytes_on_disk() const { return spill_.bytes_on_disk(); }

 private:
  /// The next part; nullptr: there is none.
  std::unique_ptr<PartitionSum> next_part();
  /// Adds a part whose events are summed, and frees them.
  Result<void> take(const PartitionSum& part);

  Ticks now_;
  Locator locate_;
  bool in_background_;
  StreamKeys keys_;
  EventSpill spill_;
  std::size_t next_ = 0;                ///< partition
  std::unique_ptr<PartitionSum> part_;  ///< by the calling thread
  DigestSum sum_;
  std::optional<BackgroundStage<PartitionSum>> beside_;  ///< of other parts
};

}  // namespace verger::streams::detail
