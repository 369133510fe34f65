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

/// For example "max-count".
std::string_view to_string(RemovalRule rule);

/// Names the rule by which keeps_prepare() said no, as far as the limits of the record's stream say
/// it. nullopt: the record lies before the discard point, which different rules may have set.
std::optional<RemovalRule> removal_rule(const log::Prepare& prepare, bool is_metastream,
                                        const StreamLimits& limits);

/// What the rule depends on then.
struct RemovalFacts {
  std::optional<OriginalData> original;  ///< the row of the stream
  EventNumber last = kNoStream;          ///< before the point; only looked up with $maxCount
};

/// Names the rule for a record before the discard point of its original stream.
RemovalRule removal_rule(EventNumber number, const RemovalFacts& facts);

/// Looks facts up.
class RemovalRules {
 public:
  RemovalRules(ScavengeState& state, const index::Index& index, const log::TransactionLog& log,
               LogPosition point);
  Result<RemovalFacts> facts_of(std::string_view stream);

 private:
  ScavengeState& state_;
  IndexView index_;
};

}  // namespace verger::scavenge
