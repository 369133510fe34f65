#include "controller/executor/step_time.h"

#include <algorithm>

namespace verger::controller {

void count_time(StepTime& time, StepPart part, Ticks at) {
  const auto before = time.counted.value_or(at);
  // A clock that was set back has no time to count.
  const auto passed = std::max<std::int64_t>(at.value() - before.value(), 0) / kTicksPerMillisecond;
  time.counted = at;
  switch (part) {
    case StepPart::kPreparing:
      time.preparing_ms += passed;
      return;
    case StepPart::kWaiting:
      time.waiting_ms += passed;
      return;
    case StepPart::kActing:
      time.acting_ms += passed;
      return;
    case StepPart::kObserving:
      time.observing_ms += passed;
      return;
  }
}

}  // namespace verger::controller
