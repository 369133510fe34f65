#pragma once

#include <string_view>

#include "controller/cluster/cluster_events.h"

/// Types of the journal's events, as the API streams them. Data is JSON. A run's events are in the
/// stream "run/<id>", plans in "plan/<hash>", clusters in "cluster/<name>".
namespace verger::controller::events {

// plans
inline constexpr std::string_view kPlanMade = "plan-made";  ///< {plan, by}

// runs; `step` and `stage` are the ids of the plan
inline constexpr std::string_view kRunStarted = "run-started";  ///< {plan, cluster, hash, by}
inline constexpr std::string_view kRunPausing = "run-pausing";  ///< {by, reason, mode, cluster}
inline constexpr std::string_view kRunPaused = "run-paused";    ///< {}
inline constexpr std::string_view kRunResumed = "run-resumed";  ///< {by, reason, ignore_hours}
inline constexpr std::string_view kRunCancelling = "run-cancelling";  ///< {by, reason}
inline constexpr std::string_view kRunEnded =
    "run-ended";  ///< {state: done|done-with-differences|failed|cancelled, reason}
inline constexpr std::string_view kRunValue =
    "run-value";  ///< {name, value}: what steps leave for later ones
inline constexpr std::string_view kNodeSkipped = "node-skipped";  ///< {node, by, reason, force}
/// {node}: what the run had begun there was not seen to end, and nothing of it runs any longer
inline constexpr std::string_view kSkippedNodeIdle = "skipped-node-idle";
inline constexpr std::string_view kLeaderMoved = "leader-moved";  ///< {from, to, planned}
inline constexpr std::string_view kLeaderSeen = "leader-seen";    ///< {node}: the first settled one
inline constexpr std::string_view kAlert = "alert";               ///< {step, key, reason}
/// {key}: what it reported is over. Most alerts of a step are cleared by how the step continues.
inline constexpr std::string_view kAlertCleared = "alert-cleared";

inline constexpr std::string_view kStageStarted = "stage-started";   ///< {stage}
inline constexpr std::string_view kStageDeferred = "stage-put-off";  ///< {stage, reason}
inline constexpr std::string_view kStageEnded = "stage-ended";       ///< {stage, state}

inline constexpr std::string_view kStepWaiting =
    "step-waiting";  ///< {step, reason, gates}; again when the reason changes
inline constexpr std::string_view kStepIntended =
    "step-intended";  ///< {step, operation, attempt, memo, not_seen}
inline constexpr std::string_view kStepActed =
    "step-acted";  ///< {step, operation, answer, reason, memo}
inline constexpr std::string_view kStepUnknown = "step-unknown";  ///< {step, reason}
inline constexpr std::string_view kStepProgress =
    "step-progress";  ///< {step, progress, memo, unwatched_ms: so long it was not watched}
inline constexpr std::string_view kStepRetry = "step-retry";  ///< {step, reason, outcome, counts}
inline constexpr std::string_view kStepInterrupting = "step-interrupting";  ///< {step, why}
inline constexpr std::string_view kStepInterrupted =
    "step-interrupted";  ///< {step, reason, outcome}: seen stopped
inline constexpr std::string_view kStepDone = "step-done";        ///< {step, result}
inline constexpr std::string_view kStepFailed = "step-failed";    ///< {step, code, reason}
inline constexpr std::string_view kStepSkipped = "step-skipped";  ///< {step, reason}
inline constexpr std::string_view kUndoStarted =
    "undo-started";  ///< {stage, why: failure|pause|hours}
/// {stage, reason}: what it had done is undone, and all of it is to be done again later
inline constexpr std::string_view kStageRolledBack = "stage-rolled-back";
inline constexpr std::string_view kUndoIntended = "undo-intended";  ///< {step, operation, attempt}
inline constexpr std::string_view kStepUndone = "step-undone";      ///< {step}
/// {step, node, reason, command: for a person; empty: none is known}
inline constexpr std::string_view kUndoFailed = "undo-failed";

}  // namespace verger::controller::events
