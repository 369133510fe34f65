#include "engine/scavenge/detail/limits_table.h"

#include <bit>

namespace verger::scavenge::detail {

LimitsTable::LimitsTable(std::size_t streams) : slots_(std::bit_ceil(streams + streams / 3 + 2)) {}

Result<std::unique_ptr<const LimitsTable>> LimitsTable::load(
    ScavengeState& state, const std::function<Result<void>()>& pause) {
  constexpr std::size_t kBetweenPauses = 4096;
  // First how many there are: growing would need the memory twice.
  std::size_t streams = 0;
  VERGER_TRY(const bool few, state.visit_limits(kMostStreams, [&](StreamHash, const StreamLimits&) {
    return ++streams % kBetweenPauses == 0 ? pause() : Result<void>{};
  }));
  if (!few) {
    return std::unique_ptr<const LimitsTable>();
  }
  std::unique_ptr<LimitsTable> table(new LimitsTable(streams));
  VERGER_RETURN_IF_ERROR(
      state.visit_limits(kMostStreams, [&](StreamHash hash, const StreamLimits& limits) {
        table->put(hash, limits);
        return --streams % kBetweenPauses == 0 ? pause() : Result<void>{};
      }));
  return std::unique_ptr<const LimitsTable>(std::move(table));
}

std::size_t LimitsTable::slot_of(StreamHash hash) const {
  const auto mixed = hash.value() * 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(mixed >> 20U) & (slots_.size() - 1);
}

void LimitsTable::put(StreamHash hash, const StreamLimits& limits) {
  auto at = slot_of(hash);
  while (slots_[at].rest != kFree) {
    at = (at + 1) & (slots_.size() - 1);
  }
  auto& slot = slots_[at];
  slot.hash = hash.value();
  slot.discard = limits.discard.first_kept();
  slot.metastream = limits.metastream;
  slot.discarded_by = limits.discarded_by;
  slot.rest = kPlain;
  // Up to the discard point everything goes anyway.
  if (limits.tombstoned || (limits.max_age_seconds && limits.maybe > limits.discard)) {
    slot.rest = static_cast<std::uint32_t>(rest_.size());
    rest_.push_back(limits);
  }
}

bool LimitsTable::find(StreamHash hash, bool metastream, StreamLimits& limits) const {
  for (auto at = slot_of(hash); slots_[at].rest != kFree; at = (at + 1) & (slots_.size() - 1)) {
    const auto& slot = slots_[at];
    if (slot.hash == hash.value() && slot.metastream == metastream) {
      limits = slot.rest == kPlain ? StreamLimits{.metastream = metastream,
                                                  .discard = DiscardPoint(slot.discard),
                                                  .discarded_by = slot.discarded_by}
                                   : rest_[slot.rest];
      return true;
    }
  }
  return false;
}

}  // namespace verger::scavenge::detail
