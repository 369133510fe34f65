#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "nodeagent/operations/operation.h"

/// What an agent does for a redaction of its cluster.
namespace verger::agent {

class NotedTextStore;

/// Members of parameters and results: a list of redactions as a text
/// (docs/formats/redactions.md).
inline constexpr std::string_view kListMember = "list";

/// redaction_check {"events": ["12@orders-7"], "metadata", "online"}: looks beside the running
/// server for what would be redacted, and changes nothing; "online": by an online redaction, so
/// that the agent need not be able to stop the server. In place of "events" it takes "list".
/// Result: {"list", "toDo", "missing": [text], "refused": [text], "obstacles": [text]}; the last
/// are an active chunk and an unfinished scavenge.
std::unique_ptr<Operation> make_redaction_check_operation();
/// offline_redaction {"list", "serviceDeadlineMs"}: stops the server, redacts in its files what the
/// list names and they have, searches all files for the former text, starts the server and waits
/// until it has caught up. Refused on a leader. Result: RedactionResult of offline_redaction_job.h.
/// Codes: those of StoppedServerOperation.
std::unique_ptr<Operation> make_offline_redaction_operation(std::shared_ptr<NotedTextStore> texts);

/// online_redaction {"list", "lockDeadlineMs", "throttlePercent", "bytesPerSecond"}: redacts beside
/// the running server what the list names and its files have: waits for its chunk lock, switches
/// redacted copies in over its Unix socket, reads the events by the server, and searches its files
/// for the former text. Result: RedactionResult. Codes: those of JobOperation; "timeout": the lock
/// was held by another for that long; "refused": also the server's own refusal, in its words.
std::unique_ptr<Operation> make_online_redaction_operation(std::shared_ptr<NotedTextStore> texts);

/// restored_redaction {"list"}: redacts what the list names in files that were just restored, whose
/// server is stopped and stays so. Result: RedactionResult, with what could not be redacted in
/// "found". Codes: those of JobOperation.
std::unique_ptr<Operation> make_restored_redaction_operation(std::shared_ptr<NotedTextStore> texts);

/// All of these.
/// `texts`: where they note the texts that they blank.
std::vector<std::unique_ptr<Operation>> redaction_operations(
    const std::shared_ptr<NotedTextStore>& texts);

}  // namespace verger::agent
