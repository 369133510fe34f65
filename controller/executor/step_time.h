#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/types.h"

namespace verger::controller {

/// Where the time of a step went, from the end of the step before it to its own. What passes while
/// the run is paused counts for nothing.
struct StepTime {
  std::int64_t preparing_ms = 0;  ///< looks at the cluster, permits, rests between attempts
  std::int64_t waiting_ms = 0;    ///< for gates and windows
  std::int64_t acting_ms = 0;     ///< from the intent until its node or agent took it
  std::int64_t observing_ms = 0;  ///< from then until its end was seen: of long work, all of it
  std::optional<Ticks> counted;   ///< up to when; nullopt: its turn has not come
};

enum class StepPart : std::uint8_t { kPreparing, kWaiting, kActing, kObserving };

/// Counts the time from `time.counted` up to `at` for `part`, which the step has been in.
void count_time(StepTime& time, StepPart part, Ticks at);

}  // namespace verger::controller
