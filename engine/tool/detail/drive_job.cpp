#include "engine/tool/detail/drive_job.h"

#include <algorithm>
#include <thread>

#include "engine/tool/stop_signals.h"

namespace verger::tool {
namespace {

using std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

/// In slices, so that a signal is seen soon.
void rest_for(Seconds time) {
  constexpr Seconds kSlice = milliseconds(100);
  for (; time.count() > 0 && !StopSignals::requested(); time -= kSlice) {
    std::this_thread::sleep_for(std::min(time, kSlice));
  }
}

}  // namespace

Result<void> drive_job(ToolContext& tool, Job& job, const DriveOptions& options) {
  const auto start = tool.clock.monotonic();
  for (;;) {
    if (StopSignals::requested()) {
      return Error{Errc::kCancelled, "stopped by a signal"};
    }
    VERGER_TRY(const auto outcome, job.step(Budget{}));
    if (options.tick) {
      options.tick();
    }
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
    if (outcome.kind == StepOutcome::Kind::kRest) {
      rest_for(outcome.rest);
    }
    if (options.bytes_per_second > 0 && options.bytes) {
      const Seconds due(static_cast<double>(options.bytes()) /
                        static_cast<double>(options.bytes_per_second));
      rest_for(due - Seconds(tool.clock.monotonic() - start));
    }
  }
}

}  // namespace verger::tool
