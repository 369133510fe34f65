#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

/// The kinds this controller knows. Each is a file of its own; step_kinds.cpp is their table.
namespace verger::controller {

/// Starts a scavenge on a node and sees it reach its point.
/// Parameters: target ("new": creates a point; "shared": to the run's point; "number": to `point`;
/// "open": what is open, where no agent can report it), syncOnly, threads, threshold,
/// throttlePercent, onPause ("stop", "leave"), agent.
/// Leaves the value "shared_point" {"number", "position"} (number -1: not seen).
/// Result: {"point", "scavengeId", "spaceSaved", "recordsRemoved", "bytesBefore", "bytesAfter",
/// "chunksCompared"}, as far as known; or {"point", "already"}. Bytes are of the chunks below
/// `chunksCompared`, before the run's first step on the node and after this one.
std::unique_ptr<StepKind> make_scavenge_step();
/// Makes the leader resign and sees another one hold. Parameters: holdMs, settleMs, agent.
/// Result: {"from", "to"} or {"not_needed"}.
std::unique_ptr<StepKind> make_resign_step();
/// Has a node's agent start its server, where it has ended and nothing else starts it.
/// Parameters: graceMs (how long to wait for something else). Result: {"instance"} and, where it
/// runs, "not_needed".
std::unique_ptr<StepKind> make_start_server_step();
/// Sets a node's priority and sees all voters' gossip show it. Parameters: priority, restore (what
/// undo sets), onlyIfLeader, agent.
std::unique_ptr<StepKind> make_set_priority_step();
/// Pauses the servers' own auto-scavenge, and sees no node show it at work. Of the whole cluster.
/// Leaves the value "auto_scavenge" {"paused": true}. Result: {} or {"not_needed"}.
std::unique_ptr<StepKind> make_pause_auto_scavenge_step();
/// Resumes it where the run paused it; before the run ends, however it does. Result: the same.
std::unique_ptr<StepKind> make_resume_auto_scavenge_step();
/// Notes which projections and persistent subscriptions run while the node leads. Leaves the value
/// "server_work" {"projections", "subscriptions"}: names, or null where they were not seen. Result:
/// {"projections", "subscriptions"} (counts or null), "why" where something was not seen;
/// "not_needed" where the node does not lead or nothing is offered.
std::unique_ptr<StepKind> make_note_server_work_step();
/// Sees what was noted run on the new leader. What is not back after backMs is started again where
/// `restart` says so, else waited for until waitMs more are over, with an alert. Result: {"back",
/// "restarted", "not_back": [{"what", "name", "status", "command"}], "report": lines of the run's
/// report}; "not_needed" where nothing was noted.
std::unique_ptr<StepKind> make_check_server_work_step();
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
/// Has a node's agent compute its digest up to the shared point; stopped by a pause or closed
/// hours, it resumes later where it was. Parameters: throttlePercent, readable ("always", "never",
/// "if-recorded": where a digest was recorded before). Result, and the value "digest/NODE" that it
/// leaves: as detail/digest_comparison.h says; {"computed": false, "reason"}: there is no point.
std::unique_ptr<StepKind> make_digest_step();
/// Compares the digests up to the shared point. Parameters: nodes, throttlePercent. Result:
/// {"compared": false, "reason"}, or what detail/digest_comparison.h says.
std::unique_ptr<StepKind> make_compare_digests_step();

}  // namespace verger::controller
