#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scavenge/preview.h"
#include "engine/scavenge/removal_rule.h"
#include "engine/scavenge/stream_walker.h"

namespace verger::scavenge {

/// Why a record stays where the rules do not remove it.
enum class StayRule : std::uint8_t {
  kBehindPoint,     ///< at or behind the scavenge point
  kNotAnEvent,      ///< a commit or epoch record: those always stay
  kTransaction,     ///< of an explicit transaction: never thinned
  kTombstone,       ///< the tombstone itself
  kNoLimits,        ///< the stream keeps everything
  kLastEvent,       ///< the last event before the point
  kNewestMetadata,  ///< nothing replaces it
  kWithinLimits,    ///< $tb and $maxCount keep it, and there is no $maxAge
  kFresh,           ///< younger than $maxAge, or in a chunk whose events all are
  kBehindKept,      ///< the walk along the stream ended at an earlier event that stays
};

/// For example "last-event".
std::string_view to_string(StayRule rule);

/// A record that decides about another one.
struct Decider {
  std::string what;  ///< "metadata", "tombstone", "event", "scavenge point"
  std::string stream;
  EventNumber number;
  LogPosition position;
  std::string chunk_file;
};

/// What a scavenge would do with one record, and why.
struct Explanation {
  std::string stream;
  EventNumber number;  ///< -1 for what has none
  LogPosition position;
  std::string type;
  Ticks timestamp;
  std::string chunk_file;  ///< empty: no file holds the position
  bool in_log = false;     ///< false: the record is gone, only its index entry is left

  bool stays = true;                           ///< the record, after the scavenge
  std::optional<RemovalRule> removed_by = {};  ///< what the rules say; it stays in a light chunk
  std::optional<StayRule> kept_by = {};        ///< the other case
  std::optional<Decider> decider = {};
  /// The index entry, after the scavenge; nullopt: there is none.
  std::optional<bool> entry_stays = {};

  double weight = 0;            ///< of the chunk file
  bool chunk_executed = false;  ///< false beside removed_by: weight and threshold keep it

  // What is known of the stream. Of a metastream only `discard`.
  std::optional<OriginalData> limits = {};
  EventNumber last{-1};  ///< last event number before the point
  DiscardPoint discard;
  DiscardPoint maybe;
  std::optional<Ticks> expires = {};  ///< its own age reaches $maxAge then

  std::string reason;   ///< a sentence
  std::string missing;  ///< what would have to happen before it goes; empty when it goes
};

/// Answers for single records, after a finished Preview, which outlives it. One thread.
class Explainer {
 public:
  explicit Explainer(Preview& preview);
  ~Explainer();

  /// The record at `position`. Errors: kNotFound, kCorruption, kIo.
  Result<Explanation> record(LogPosition position);
  /// Every index entry of the stream with a number in [from, to], ascending, at most `limit`.
  /// kNotFound when there is none.
  Result<std::vector<Explanation>> stream(std::string_view name, EventNumber from, EventNumber to,
                                          std::size_t limit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::scavenge
