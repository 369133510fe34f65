#include "controller/executor/run_state.h"

// The names of a run's states. How events change them is in detail/run_events.h.
namespace verger::controller {

std::string_view to_string(RunStatus status) {
  switch (status) {
    case RunStatus::kPlanned:
      return "planned";
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kPausing:
      return "pausing";
    case RunStatus::kPaused:
      return "paused";
    case RunStatus::kWaiting:
      return "waiting";
    case RunStatus::kCancelling:
      return "cancelling";
    case RunStatus::kDone:
      return "done";
    case RunStatus::kDoneWithDifferences:
      return "done-with-differences";
    case RunStatus::kFailed:
      return "failed";
    case RunStatus::kCancelled:
      return "cancelled";
  }
  return "";
}

std::string_view to_string(StepStatus status) {
  switch (status) {
    case StepStatus::kPending:
      return "pending";
    case StepStatus::kWaiting:
      return "waiting";
    case StepStatus::kActing:
      return "acting";
    case StepStatus::kUnknown:
      return "unknown";
    case StepStatus::kDone:
      return "done";
    case StepStatus::kFailed:
      return "failed";
    case StepStatus::kSkipped:
      return "skipped";
    case StepStatus::kUndone:
      return "undone";
  }
  return "";
}

std::string_view to_string(PauseMode mode) {
  switch (mode) {
    case PauseMode::kPolicy:
      return "policy";
    case PauseMode::kDrain:
      return "drain";
    case PauseMode::kNow:
      return "now";
  }
  return "";
}

std::optional<PauseMode> parse_pause_mode(std::string_view text) {
  for (const auto mode : {PauseMode::kPolicy, PauseMode::kDrain, PauseMode::kNow}) {
    if (text == to_string(mode)) {
      return mode;
    }
  }
  return std::nullopt;
}

std::string_view to_string(StageStatus status) {
  switch (status) {
    case StageStatus::kPending:
      return "pending";
    case StageStatus::kRunning:
      return "running";
    case StageStatus::kDone:
      return "done";
    case StageStatus::kFailed:
      return "failed";
    case StageStatus::kUndoing:
      return "undoing";
    case StageStatus::kUndone:
      return "undone";
  }
  return "";
}

}  // namespace verger::controller
