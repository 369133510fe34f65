#pragma once

#include <functional>

#include "engine/base/job.h"
#include "engine/tool/tool_context.h"

namespace verger::tool {

/// How a job is driven from the command line.
struct DriveOptions {
  std::uint64_t bytes_per_second = 0;  ///< 0: no limit
  /// What the job has moved so far, for the limit.
  std::function<std::uint64_t()> bytes{};
  /// After each step.
  std::function<void()> tick{};
};

/// Steps `job` until it is done, and rests where it or the limit says so. Errors: the job's own;
/// kCancelled after SIGINT or SIGTERM, between two steps. The caller holds StopSignals.
Result<void> drive_job(ToolContext& tool, Job& job, const DriveOptions& options);

}  // namespace verger::tool
