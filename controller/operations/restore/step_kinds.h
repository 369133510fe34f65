#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

/// The kinds of a restore's steps. Names, parameters and values: planner/restore/restore_steps.h.
namespace verger::controller::cluster_restore {

/// Looks for the backup and for room once more. Result: {"generation"}.
std::unique_ptr<StepKind> make_prepare_step();
/// Stops a server, which stays so; undone by starting it. Result: {"was_stopped"}.
std::unique_ptr<StepKind> make_stop_step();
/// Has the agent replace the files; undone by reverting to the former ones, as long as no restored
/// server was started. Result: {"bytes", "duration_ms", "end_position", "old_files"}.
std::unique_ptr<StepKind> make_restore_step();
/// Sees all nodes stopped and restored; from then on servers are started. Result: {"at"}.
std::unique_ptr<StepKind> make_commit_step();
/// Sees the cluster whole, or the node following. Result: {"leader", "epoch", "positions": {NAME:
/// position}, "stream_read", "not_read"}.
std::unique_ptr<StepKind> make_check_step();
/// Removes what a restore kept. Result: {"bytes"}.
std::unique_ptr<StepKind> make_discard_step();

}  // namespace verger::controller::cluster_restore
