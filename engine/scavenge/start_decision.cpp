#include "engine/scavenge/start_decision.h"

#include "engine/streams/latest_scavenge_point.h"

namespace verger::scavenge {

StartDecision decide_start(const std::optional<Checkpoint>& checkpoint,
                           const std::optional<ScavengePoint>& latest, bool sync_only) {
  if (checkpoint && checkpoint->stage != Stage::kDone) {
    return {.kind = StartKind::kResume, .point = checkpoint->point};
  }
  if (latest && (!checkpoint || latest->number > checkpoint->point.number)) {
    return {.kind = StartKind::kUsePoint, .point = latest};
  }
  if (sync_only) {
    return {};
  }
  // With a log that has lost its points (latest is absent) the first one is made anew.
  const auto expected = checkpoint && latest ? checkpoint->point.number.value() : -1;
  return {.kind = StartKind::kCreatePoint, .point = {}, .expected_version = expected};
}

Result<StartDecision> find_start(const std::optional<Checkpoint>& checkpoint,
                                 const streams::Database& database, bool sync_only) {
  if (checkpoint && checkpoint->stage != Stage::kDone) {
    return decide_start(checkpoint, std::nullopt, sync_only);
  }
  VERGER_TRY(const auto latest, streams::latest_scavenge_point(database));
  return decide_start(checkpoint, latest, sync_only);
}

}  // namespace verger::scavenge
