#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/index/index.h"
#include "engine/log/record.h"
#include "engine/scavenge/index_view.h"
#include "engine/scavenge/rules.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::scavenge {

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

/// For example "max-count".
std::string_view to_string(RemovalRule rule);

/// Names the rule by which keeps_prepare() said no. `original` is the row of the record's stream,
/// `last` its last event number before the point (only looked up with $maxCount).
RemovalRule removal_rule(const log::Prepare& prepare, bool is_metastream,
                         const StreamLimits& limits, const std::optional<OriginalData>& original,
                         EventNumber last);

/// What removal_rule() has to know of a stream beside its limits.
struct RemovalFacts {
  std::optional<OriginalData> original;
  EventNumber last = kNoStream;
};

/// The same, looking up what it needs.
class RemovalRules {
 public:
  RemovalRules(ScavengeState& state, const index::Index& index, const log::TransactionLog& log,
               LogPosition point);
  /// `facts` are the stream's: looked up where they are missing and needed.
  Result<RemovalRule> of(const log::Prepare& prepare, bool is_metastream,
                         const StreamLimits& limits, std::optional<RemovalFacts>& facts);

 private:
  ScavengeState& state_;
  IndexView index_;
};

}  // namespace verger::scavenge
