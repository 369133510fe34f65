#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

/// The kinds of steps of a scavenge, each a file of its own.
namespace verger::controller::scavenge {

/// Starts a scavenge on a node and sees it reach its point.
/// Parameters: target ("new": creates a point; "shared": to the run's point; "number": to `point`;
/// "open": what is open, where no agent can report it), syncOnly, threads, threshold,
/// throttlePercent, onPause ("stop", "leave"), agent.
/// Leaves the value "shared_point" {"number", "position"} (number -1: not seen).
/// Result: {"point", "scavengeId", "spaceSaved", "recordsRemoved", "bytesBefore", "bytesAfter",
/// "chunksCompared"}, as far as known; or {"point", "already"}. Bytes are of the chunks below
/// `chunksCompared`, before the run's first step on the node and after this one.
std::unique_ptr<StepKind> make_scavenge_step();
/// Pauses the servers' own auto-scavenge, and sees no node show it at work. Of the whole cluster.
/// Leaves the value "auto_scavenge" {"paused": true}. Result: {} or {"not_needed"}.
std::unique_ptr<StepKind> make_pause_auto_scavenge_step();
/// Resumes it where the run paused it; before the run ends, however it does. Result: the same.
std::unique_ptr<StepKind> make_resume_auto_scavenge_step();
/// Keeps the digest of a node that has not reached the shared point yet. Result: {"recorded",
/// "reason"} or {"recorded", "point", "logical", "readable", "records", "readableEvents"}. Leaves
/// the value "digest_before" {"node", "readable"}.
std::unique_ptr<StepKind> make_record_digest_step();
/// Sees to it that the log has the point that all nodes share. Parameters: point (that one, which
/// is there; -1: a new one, by a scavenge that is stopped at once), threshold. Needs an agent.
/// Leaves the value "shared_point".
std::unique_ptr<StepKind> make_scavenge_point_step();
/// Has a node's agent stop it, scavenge its files up to the shared point and start it. Undo starts
/// it. Parameters: threads, onPause, onClose. Result as of a scavenge.
std::unique_ptr<StepKind> make_offline_scavenge_step();
/// Has a node's agent scavenge its chunks beside the running server, up to the shared point, and
/// switch the new ones into it. Parameters: threads, throttlePercent, onPause, onClose. Result as
/// of a scavenge, with "chunks_switched" and "chunks_left" (to the server).
std::unique_ptr<StepKind> make_online_scavenge_step();
/// Has a node's agent compute its digest up to the shared point; stopped by a pause or closed
/// hours, it resumes later where it was. Parameters: throttlePercent, readable ("always", "never",
/// "if-recorded": where a digest was recorded before). Result, and the value "digest/NODE" that it
/// leaves: as digest_comparison.h says; {"computed": false, "reason"}: there is no point.
std::unique_ptr<StepKind> make_digest_step();
/// Compares the digests up to the shared point. Parameters: nodes, throttlePercent. Result:
/// {"compared": false, "reason"}, or what digest_comparison.h says.
std::unique_ptr<StepKind> make_compare_digests_step();

}  // namespace verger::controller::scavenge
