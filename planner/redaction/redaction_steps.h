#pragma once

#include <string_view>

/// Names that plans of a redaction share with the code that carries them out. They are parts of
/// plans, hashes and journals.
namespace verger::planner::redaction_steps {

// --- kinds of steps, and their parameters
/// On a node, whose agent looks for the events in its files and changes nothing. What is refused,
/// or stands against it, fails the step. Leaves the run's value kFoundValue + NODE. Parameters:
/// `events`, `metadata`.
inline constexpr std::string_view kCheck = "redaction_check";
/// On the cluster: what the nodes found becomes one list; an event that no node has, and a record
/// that is another one on another node, fails the step. Leaves kListValue.
/// Parameters: `nodes`.
inline constexpr std::string_view kAgree = "redaction_agree";
/// On a node, whose agent stops its server, redacts what the list names, searches its files and
/// starts the server. Not needed where the check found nothing to do. Undone by starting the
/// server. Parameters: `onClose`, `onPause`, `serviceDeadlineMs` (where it is not the usual).
inline constexpr std::string_view kRedact = "offline_redaction";
/// On the cluster: which backups the agents know that may hold the data. It deletes none.
/// Parameters: none.
inline constexpr std::string_view kBackups = "redaction_backups";

// --- values of the run
/// {"list", "to_do", "missing"}: what the node has of the events
inline constexpr std::string_view kFoundValue = "redaction/found/";
/// {"list"}: of all nodes, in the format of docs/formats/redactions.md
inline constexpr std::string_view kListValue = "kept/redactions";

}  // namespace verger::planner::redaction_steps
