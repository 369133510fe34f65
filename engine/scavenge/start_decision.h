#pragma once

#include <cstdint>
#include <optional>

#include "engine/scavenge/types.h"

namespace verger::scavenge {

enum class StartKind : std::uint8_t {
  kResume,       ///< continue with `checkpoint`, whichever point was requested
  kUsePoint,     ///< scavenge `point`, which is in the log
  kCreatePoint,  ///< write a point with `expected_version`, then scavenge it
  kNothing,      ///< all points are reached and none may be made
};

/// What a request to scavenge leads to (docs/formats/scavenge.md, "Start").
struct StartDecision {
  StartKind kind = StartKind::kNothing;
  std::optional<ScavengePoint> point = {};  ///< kResume, kUsePoint
  /// kCreatePoint: version of $scavengePoints to expect; -1 = the stream must not exist.
  std::int64_t expected_version = -1;
  friend bool operator==(const StartDecision&, const StartDecision&) = default;
};

/// `latest` is the last point in the log.
StartDecision decide_start(const std::optional<Checkpoint>& checkpoint,
                           const std::optional<ScavengePoint>& latest, bool sync_only);
/// Looks for the last point where it is needed: an unfinished scavenge continues even without the
/// stream $scavengePoints. Errors: as streams::latest_scavenge_point.
Result<StartDecision> find_start(const std::optional<Checkpoint>& checkpoint,
                                 const streams::Database& database, bool sync_only);

}  // namespace verger::scavenge
