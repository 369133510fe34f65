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

RemovalRule removal_rule(const log::Prepare& prepare, bool is_metastream,
                         const StreamLimits& limits, const std::optional<OriginalData>& original,
                         EventNumber last) {
  if (limits.tombstoned) {
    return is_metastream                                    ? RemovalRule::kDeletedMetadata
           : prepare.has(log::prepare_flags::kStreamDelete) ? RemovalRule::kTombstone
                                                            : RemovalRule::kDeletedStream;
  }
  if (is_metastream) {
    return RemovalRule::kReplacedMetadata;
  }
  const auto number = prepare.event_number();
  if (!limits.discard.discards(number)) {
    return RemovalRule::kMaxAge;
  }
  if (!original) {
    return RemovalRule::kEarlierScavenge;
  }
  if (original->truncate_before && number.value() < *original->truncate_before) {
    return *original->truncate_before == kDeletedStream.value() ? RemovalRule::kSoftDeleted
                                                                : RemovalRule::kTruncateBefore;
  }
  if (discarded_by_number(*original, number, last)) {
    return RemovalRule::kMaxCount;
  }
  return original->max_age_seconds ? RemovalRule::kMaxAge : RemovalRule::kEarlierScavenge;
}

RemovalRules::RemovalRules(ScavengeState& state, const index::Index& index,
                           const log::TransactionLog& log, LogPosition point)
    : state_(state), index_(index, log, point) {}

Result<RemovalRule> RemovalRules::of(const log::Prepare& prepare, bool is_metastream,
                                     const StreamLimits& limits,
                                     std::optional<RemovalFacts>& facts) {
  if (is_metastream || limits.tombstoned) {
    return removal_rule(prepare, is_metastream, limits, std::nullopt, kNoStream);
  }
  if (!facts) {
    const auto handle = state_.handle_of(prepare.stream);
    RemovalFacts found;
    VERGER_TRY(found.original, state_.original_data(handle));
    if (found.original && found.original->max_count) {
      // With a single limit it is clear what discards; the look into the index would cost more
      // than the rest.
      found.last = kDeletedStream;
      if (found.original->truncate_before || found.original->max_age_seconds) {
        const auto name_of = [&prepare]() -> Result<std::string> {
          return std::string(prepare.stream);
        };
        VERGER_TRY(found.last, index_.last_number(handle, name_of));
      }
    }
    facts = found;
  }
  return removal_rule(prepare, is_metastream, limits, facts->original, facts->last);
}

}  // namespace verger::scavenge
