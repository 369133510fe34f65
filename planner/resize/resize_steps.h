#pragma once

#include <string_view>

/// Names that plans of another number of voters share with the code that carries them out. They are
/// parts of plans, hashes and journals.
namespace verger::planner::resize_steps {

/// On a node that stays: its server resigns if it leads, is stopped, gets another ClusterSize (and
/// other gossip seeds) in its configuration file, and is started. Undone by the former file, one
/// node after the other, and only once no voter runs that is none with the former size. Parameters:
/// `absent`, `addSeeds`, `file`, `from`, `later`, `nodes`, `removeSeeds`, `serviceDeadlineMs`,
/// `starts`, `to`.
inline constexpr std::string_view kSize = "resize_server";
/// Looks until all of `nodes` are members of one leader's epoch and have what is committed. Fails
/// where one of `absent` runs. Parameters: `absent`, `holdMs`, `nodes`.
inline constexpr std::string_view kSettled = "resize_settled";
/// On a new node: growth_steps::kStart, which fails where the server reports another `size`. Its
/// undo waits until the members have a quorum of their own, and all that is committed. Parameters:
/// `nodes` (the members), `size`, and those.
inline constexpr std::string_view kStart = "resize_start";
/// On a new node: restore_steps::kCheck, to which the new voters count. Parameters: those.
inline constexpr std::string_view kFollow = "resize_follow";
/// On a node that leaves: restore_steps::kStop, whose undo waits until no node that stays has the
/// smaller size. Parameters: `sizes` (steps), and those.
inline constexpr std::string_view kLeave = "resize_leave";
/// Leaves kCommittedValue, and committed_value() of each restored node: from then on nothing is
/// undone; then kMembersValue of the executor. Parameters: `absent`, `joined`, `left`, `nodes`,
/// `replaces` (those that leave and are gone: kReplacesParameter of the executor), `to`.
inline constexpr std::string_view kCommit = "resize_commit";
/// Value of a run: {"at"}.
inline constexpr std::string_view kCommittedValue = "resize_committed";

}  // namespace verger::planner::resize_steps
