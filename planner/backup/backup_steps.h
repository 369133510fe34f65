#pragma once

#include <string_view>

/// Names that plans of backups share with the code that carries them out. They are parts of plans,
/// hashes and journals.
namespace verger::planner::backup_steps {

// --- kinds of steps, and their parameters; all times are milliseconds
/// On a node, whose agent copies its files. Result: what the agent says of the new generation.
/// Leaves the run's value kMadeValue + NODE.
/// Parameters: `bytesPerSecond`, `digests`, `full`, `mode`, `onClose`, `onPause`, `repository`,
/// `repositoryId` (where it is known), `serviceDeadlineMs` (mode offline), `threads`,
/// `throttlePercent`.
inline constexpr std::string_view kCreate = "backup_create";
/// On a node, whose agent reads all of a generation. What it finds damaged are the step's
/// differences. Leaves the run's value kVerifiedValue + GENERATION.
/// Parameters: `bytesPerSecond`, `onClose`, `onPause`, `repository`, `repositoryId`,
/// `throttlePercent`, and `generation` or `made`: the node whose new generation it is.
inline constexpr std::string_view kVerify = "backup_verify";
/// On a node, whose agent restores a generation to its scratch directory and starts a node on it.
/// Parameters as kVerify; leaves kDrilledValue + GENERATION.
inline constexpr std::string_view kDrill = "backup_drill";
/// On a node, whose agent deletes generations. With `after`, the nodes whose new generations have
/// to be there, undamaged: without them nothing is deleted.
/// Parameters: `after`, `keepDaily`, `keepLast`, `keepMonthly`, `keepWeekly`, `keepWithinDays`,
/// `of` (the nodes whose generations the rules are about), or `generations`; `repository`,
/// `repositoryId`.
inline constexpr std::string_view kRetain = "backup_retain";
/// On a node: a scavenge that runs there is stopped by its id. Its value kHeldValue + NODE is
/// journaled with the intent.
/// Parameters: none.
inline constexpr std::string_view kHold = "scavenge_hold";
/// On the cluster: the scavenge that kHold stopped on `of` is started again, however the run ends.
/// Parameters: `of`: the node.
inline constexpr std::string_view kRelease = "scavenge_release";

// --- values of the run
/// {"generation", "node"}
inline constexpr std::string_view kMadeValue = "backup/";
/// {"passed"}
inline constexpr std::string_view kVerifiedValue = "verified/";
/// {"passed"}
inline constexpr std::string_view kDrilledValue = "drilled/";
/// {"scavenge_id", "held_at"}
inline constexpr std::string_view kHeldValue = "held_scavenge/";

}  // namespace verger::planner::backup_steps
