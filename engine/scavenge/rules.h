#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "engine/base/types.h"
#include "engine/index/entry.h"
#include "engine/log/record.h"

/// The retention rules as pure functions (docs/formats/scavenge.md). Nothing here reads a clock:
/// "now" is the scavenge point's.
namespace verger::scavenge {

/// The first event number to keep; 0 keeps everything.
class DiscardPoint {
 public:
  constexpr DiscardPoint() = default;
  constexpr explicit DiscardPoint(std::int64_t first_kept)
      : first_kept_(first_kept < 0 ? 0 : first_kept) {}
  static constexpr DiscardPoint before(EventNumber number) { return DiscardPoint(number.value()); }
  /// `number` must be below the greatest one.
  static constexpr DiscardPoint including(EventNumber number) {
    return DiscardPoint(number.value() + 1);
  }
  [[nodiscard]] constexpr bool discards(EventNumber number) const {
    return number.value() < first_kept_;
  }
  [[nodiscard]] constexpr std::int64_t first_kept() const { return first_kept_; }
  friend constexpr auto operator<=>(const DiscardPoint&, const DiscardPoint&) = default;

 private:
  std::int64_t first_kept_ = 0;
};

constexpr DiscardPoint either(DiscardPoint a, DiscardPoint b) { return a < b ? b : a; }

enum class StreamStatus : std::uint8_t {
  kActive = 1,    ///< to be visited by the next calculation
  kArchived = 2,  ///< deleted for good: not visited, kept
  kSpent = 3,     ///< not visited, deleted by the cleaner
};

/// Why a record goes, as people know the rules.
enum class RemovalRule : std::uint8_t {
  kDeletedStream,     ///< the stream has a tombstone
  kTombstone,         ///< the tombstone itself (unsafe-ignore-hard-delete)
  kDeletedMetadata,   ///< metadata of a deleted stream
  kSoftDeleted,       ///< $tb is the greatest number
  kTruncateBefore,    ///< $tb
  kMaxCount,          ///< $maxCount
  kMaxAge,            ///< $maxAge
  kReplacedMetadata,  ///< there is newer metadata
  kEarlierScavenge,   ///< before a point that an earlier scavenge, or a gap in the index, has set
};
inline constexpr std::size_t kRemovalRuleCount = 9;

/// What is known of an original stream.
struct OriginalData {
  bool tombstoned = false;
  std::optional<std::int64_t> max_age_seconds = {};
  std::optional<std::int64_t> max_count = {};
  std::optional<std::int64_t> truncate_before = {};
  DiscardPoint discard = {};
  DiscardPoint maybe = {};
  StreamStatus status = StreamStatus::kActive;
  friend bool operator==(const OriginalData&, const OriginalData&) = default;
};

/// What decides about the records and entries of a stream; the default keeps everything.
struct StreamLimits {
  bool tombstoned = false;
  bool metastream = false;  ///< the data come from the metastream table
  DiscardPoint discard = {};
  DiscardPoint maybe = {};
  std::optional<std::int64_t> max_age_seconds = {};
  /// By which all numbers before the discard point go; nullopt: that may differ, or was not looked
  /// up. Decides nothing.
  std::optional<RemovalRule> discarded_by = {};
  friend bool operator==(const StreamLimits&, const StreamLimits&) = default;
};

/// The oldest and the newest time stamp among the prepares of a logical chunk.
struct TimeRange {
  Ticks min;
  Ticks max;
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// The time below which events are too old. Beyond the beginning of time nothing is too old (the
/// server fails there, and so do its reads of such a stream).
Ticks cutoff_of(Ticks effective_now, std::int64_t max_age_seconds);

enum class EventDecision : std::uint8_t { kKeep, kDiscard, kMaybeDiscard, kAlreadyDiscarded };

/// The status a stream has once it is calculated; `last` is the last event number before the point.
StreamStatus status_after_calculation(const OriginalData& stream, EventNumber last);

/// Does the limits' number arithmetic discard `number`? ($tb and $maxCount.)
bool discarded_by_number(const OriginalData& stream, EventNumber number, EventNumber last);

/// The rule by which all numbers before the stream's discard point go; nullopt: it depends on the
/// number, or on the last one. A single limit is the one that discards.
std::optional<RemovalRule> rule_of_discard(const OriginalData& stream);

/// The age rule for an event in a chunk with this range (nullopt: no prepare was seen there).
EventDecision decide_by_age(const std::optional<TimeRange>& range, Ticks cutoff);

/// Collects the decisions along one stream, in order of event numbers, until one is kKeep.
class StreamWalk {
 public:
  /// The weight this decision adds to the event's chunk: 0, 1 or 2.
  int add(EventNumber number, EventDecision decision);
  bool stopped() const { return stopped_; }
  bool started() const { return started_; }
  DiscardPoint discard() const { return discard_; }
  /// Never below discard() once stopped.
  DiscardPoint maybe() const { return maybe_; }

 private:
  DiscardPoint discard_;
  DiscardPoint maybe_;
  bool all_gone_ = true;
  bool started_ = false;
  bool stopped_ = false;
};

/// What the decisions of a run have in common.
struct RunRules {
  LogPosition point;
  Ticks effective_now;
  bool unsafe_ignore_hard_delete = false;
};

/// Does the prepare stay in the log? `is_metastream` belongs to its stream.
bool keeps_prepare(const log::Prepare& prepare, bool is_metastream, const StreamLimits& limits,
                   const RunRules& rules);

/// Would keeps_prepare() look at the record's event number? It must not be negative then: the
/// server fails on such a record.
bool asks_for_number(const log::Prepare& prepare, bool is_metastream, const StreamLimits& limits,
                     const RunRules& rules);

/// Does an index entry stay? Not for entries of collisions whose record is gone: those always go.
bool keeps_entry(const index::IndexEntry& entry, const StreamLimits& limits, const RunRules& rules);

}  // namespace verger::scavenge
