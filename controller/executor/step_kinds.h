#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

/// The kinds that are no operation's own. Each is a file of its own; step_kinds.cpp is their table.
namespace verger::controller {

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
/// Adds all of these.
void add_common_step_kinds(StepKinds& kinds);

}  // namespace verger::controller
