#pragma once

#include <string_view>

/// Names that plans of a redaction share with the code that carries them out. They are parts of
/// plans, hashes and journals.
namespace verger::planner::redaction_steps {

// --- kinds of steps, and their parameters
/// On a node, whose agent looks for the events in its files and changes nothing. What is refused,
/// or stands against it, fails the step. Leaves the run's value kFoundValue + NODE. Parameters:
/// `events`, `metadata`, `online` (true where the node is to be redacted while it runs).
inline constexpr std::string_view kCheck = "redaction_check";
/// On the cluster: what the nodes found becomes one list; an event that no node has, and a record
/// that is another one on another node, fails the step. Leaves kListValue.
/// Parameters: `nodes`.
inline constexpr std::string_view kAgree = "redaction_agree";
/// On a node, whose agent stops its server, redacts what the list names, searches its files and
/// starts the server. Not needed where the check found nothing to do. Undone by starting the
/// server. Parameters: `onClose`, `onPause`, `serviceDeadlineMs` (where it is not the usual).
inline constexpr std::string_view kRedact = "offline_redaction";
/// On a node, whose agent redacts what the list names while its server runs, and searches its
/// files. Not needed where the check found nothing to do. Nothing is to be undone: each chunk file
/// is the former one or the redacted one. Parameters: `onClose`, `onPause`.
inline constexpr std::string_view kRedactOnline = "online_redaction";
/// On a node, after all are redacted: whether it still is. One that was filled again meanwhile from
/// a node that was not redacted yet has the data again: a difference. Where there is none it leaves
/// kConfirmedValue + NODE. It goes by the agreed list. Parameters: `online`.
inline constexpr std::string_view kConfirm = "redaction_confirm";
/// On the cluster: which backups the agents know that may hold the data. It deletes none. Leaves
/// kBackupsValue. Parameters: none.
inline constexpr std::string_view kBackups = "redaction_backups";

/// On a node, whose agent deletes those of them that this cluster made in the repository, once node
/// `made` is confirmed, and the run's new backup of it is there and was found sound. Parameters:
/// `made`, `repository`, `repositoryId` (without it the repository was empty: nothing is deleted).
inline constexpr std::string_view kExpire = "redaction_expire";

/// In plans of restores and growths, which have it under this name: planner/restore.
inline constexpr std::string_view kRedactAgain = "redaction_again";

// --- values of the run
/// {"backups": [{"generation", "repository_id", "cluster"}]}: what kBackups found
inline constexpr std::string_view kBackupsValue = "redaction/backups";
/// The look at the end found all of the node's records redacted
inline constexpr std::string_view kConfirmedValue = "redaction/confirmed/";
/// {"list", "to_do", "missing"}: what the node has of the events
inline constexpr std::string_view kFoundValue = "redaction/found/";
/// {"list"}: of all nodes, in the format of docs/formats/redactions.md
inline constexpr std::string_view kListValue = "kept/redactions";

}  // namespace verger::planner::redaction_steps
