#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/scavenge/index_view.h"
#include "engine/scavenge/rules.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge {

/// The rule that decided about one event of a stream while it was walked; the first one that holds.
enum class EventRule : std::uint8_t {
  kLast,            ///< stays: the last event before the point
  kOldTombstone,    ///< stays: a tombstone under the number of old databases
  kDeleted,         ///< goes: the stream is deleted
  kTruncateBefore,  ///< goes: below $tb
  kMaxCount,        ///< goes: beyond $maxCount
  kNoAge,           ///< stays: within the limits by number, and there is no $maxAge
  kEmptiedChunk,    ///< gone: the index points into a chunk without prepares
  kFresh,           ///< stays: its chunk holds nothing that is too old
  kExpired,         ///< goes: all of its chunk is too old
  kMixedAges,       ///< its own age decides when its chunk is rewritten
};

/// Walks one stream from its first event to the first that stays, as the calculation does: the
/// index alone decides, with the chunks' time ranges. One thread; what it is given outlives it.
class StreamWalker {
 public:
  StreamWalker(const index::Index& index, const log::TransactionLog& log,
               const ScavengePoint& point, ScavengeState& state);

  struct Verdict {
    index::IndexEntry entry;
    EventDecision decision = EventDecision::kKeep;
    EventRule rule = EventRule::kLast;
    int weight = 0;  ///< for the event's chunk
  };
  using Visitor = std::function<void(const Verdict&)>;

  /// Begins with another stream.
  Result<void> start(const OriginalRow& row);
  /// Continues for at most 8192 event numbers; true once the stream is finished. Error: kCorruption
  /// (the index lacks the last event).
  Result<bool> step(const Visitor& visit);
  /// No entry of the stream's hash lies below the scavenge point with a number that `discard`
  /// discards. Of a long stream also false where one lies behind the point.
  Result<bool> keeps_entries_from(DiscardPoint discard);
  /// Entries looked at in the last step.
  [[nodiscard]] std::size_t entries_read() const { return entries_.size(); }

  [[nodiscard]] const StreamWalk& walk() const { return walk_; }
  /// The last event number before the point; -1 when there is none.
  [[nodiscard]] EventNumber last() const { return last_; }
  /// Below it events are too old; nullopt without $maxAge.
  [[nodiscard]] std::optional<Ticks> cutoff() const { return cutoff_; }

 private:
  Result<Verdict> judge(const index::IndexEntry& entry);
  Result<const std::optional<TimeRange>*> range_of(std::int32_t chunk);

  const log::TransactionLog& log_;
  Ticks effective_now_;
  ScavengeState& state_;
  IndexView index_;

  OriginalRow row_;
  EventNumber last_;
  std::optional<Ticks> cutoff_;
  std::int64_t slice_ = 0;
  StreamWalk walk_;
  std::vector<index::IndexEntry> entries_;
  std::unordered_map<std::int32_t, std::optional<TimeRange>> ranges_;
};

}  // namespace verger::scavenge
