#include "engine/scavenge/removal_rule.h"

namespace verger::scavenge {

std::string_view to_string(RemovalRule rule) {
  switch (rule) {
    case RemovalRule::kDeletedStream:
      return "deleted-stream";
    case RemovalRule::kTombstone:
      return "tombstone";
    case RemovalRule::kDeletedMetadata:
      return "metadata-of-deleted-stream";
    case RemovalRule::kSoftDeleted:
      return "soft-deleted";
    case RemovalRule::kTruncateBefore:
      return "truncate-before";
    case RemovalRule::kMaxCount:
      return "max-count";
    case RemovalRule::kMaxAge:
      return "max-age";
    case RemovalRule::kReplacedMetadata:
      return "replaced-metadata";
    case RemovalRule::kEarlierScavenge:
      return "earlier-scavenge";
  }
  return "unknown";
}

std::optional<RemovalRule> removal_rule(const log::Prepare& prepare, bool is_metastream,
                                        const StreamLimits& limits) {
  if (limits.tombstoned) {
    return is_metastream                                    ? RemovalRule::kDeletedMetadata
           : prepare.has(log::prepare_flags::kStreamDelete) ? RemovalRule::kTombstone
                                                            : RemovalRule::kDeletedStream;
  }
  if (is_metastream) {
    return RemovalRule::kReplacedMetadata;
  }
  return limits.discard.discards(prepare.event_number()) ? limits.discarded_by
                                                         : RemovalRule::kMaxAge;
}

RemovalRule removal_rule(EventNumber number, const RemovalFacts& facts) {
  const auto& original = facts.original;
  if (!original) {
    return RemovalRule::kEarlierScavenge;
  }
  if (original->truncate_before && number.value() < *original->truncate_before) {
    return *original->truncate_before == kDeletedStream.value() ? RemovalRule::kSoftDeleted
                                                                : RemovalRule::kTruncateBefore;
  }
  if (discarded_by_number(*original, number, facts.last)) {
    return RemovalRule::kMaxCount;
  }
  return original->max_age_seconds ? RemovalRule::kMaxAge : RemovalRule::kEarlierScavenge;
}

RemovalRules::RemovalRules(ScavengeState& state, const index::Index& index,
                           const log::TransactionLog& log, LogPosition point)
    : state_(state), index_(index, log, point) {}

Result<RemovalFacts> RemovalRules::facts_of(std::string_view stream) {
  const auto handle = state_.handle_of(stream);
  RemovalFacts facts;
  VERGER_TRY(facts.original, state_.original_data(handle));
  if (facts.original && facts.original->max_count) {
    // With a single limit it is clear what discards; the look into the index would cost more than
    // the rest.
    facts.last = kDeletedStream;
    if (facts.original->truncate_before || facts.original->max_age_seconds) {
      const auto name_of = [stream]() -> Result<std::string> { return std::string(stream); };
      VERGER_TRY(facts.last, index_.last_number(handle, name_of));
    }
  }
  return facts;
}

}  // namespace verger::scavenge
