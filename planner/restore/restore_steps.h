#pragma once

#include <string_view>

/// Names that plans of a restore share with the code that carries them out. They are parts of
/// plans, hashes and journals.
namespace verger::planner::restore_steps {

/// Of the parameter "generation": the newest undamaged one of the cluster.
inline constexpr std::string_view kLatest = "latest";

// --- kinds of steps; all have the parameter `scope`
/// On the cluster, or on a node with scope node: looks once more at what the plan was made on, and
/// notes where each node's log ends. Leaves the value kBeforeValue.
/// Parameters: `generation`, `nodes`: [NAME], `repository`, `repositoryId`, `restoredBytes`.
inline constexpr std::string_view kPrepare = "restore_prepare";
/// On a node: its server is stopped, and stays so. Undone by starting it, unless it was stopped
/// before, or `staysStopped` says so. Parameters: `resignFirst` (a server that leads),
/// `serviceDeadlineMs`, where it is not the usual, and `staysStopped`.
inline constexpr std::string_view kStop = "server_stop";
/// On a node: the backup's files take the place of its own, which are kept. Undone by reverting to
/// those, as long as no restored node was started. Parameters: `bytesPerSecond`, `generation`,
/// `otherNode`, `repository`, `repositoryId`, `threads`.
inline constexpr std::string_view kRestore = "backup_restore";
/// On a node that was restored and has not run since: its agent redacts in its files what runs of
/// the cluster have redacted. What it cannot is a difference. Not needed where there is nothing.
/// Nothing is undone: the former files come back with the restore's. Parameters: `runs`.
inline constexpr std::string_view kRedactAgain = "redaction_again";
/// On the cluster, or on a node with scope node: all of `nodes` are seen stopped and restored.
/// Leaves the value committed_value(): from then on no node is reverted by itself.
/// Parameters: `nodes`.
inline constexpr std::string_view kCommit = "restore_commit";
/// On the cluster, or on a node with scope node: one leader, all nodes in its history, or the node
/// follows it. Leaves the value kNewHistory of the executor with scope cluster.
/// Parameters: `endPosition`, `lagLimitBytes`, `nodes`.
inline constexpr std::string_view kCheck = "restore_check";
/// On a node: what a restore kept is removed. Parameters: `generation`.
inline constexpr std::string_view kDiscard = "restore_discard";

// --- values of the run
/// {NAME: {"writer": position or -1}}: where the logs ended that were replaced.
inline constexpr std::string_view kBeforeValue = "restore_before";
/// {"at": ISO-8601}; with scope node "restore_committed/NAME".
inline constexpr std::string_view kCommittedValue = "restore_committed";

}  // namespace verger::planner::restore_steps
