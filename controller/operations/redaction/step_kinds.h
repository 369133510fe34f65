#pragma once

#include <memory>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

/// What is done for a redaction. Parameters and values: planner/redaction/redaction_steps.h.
namespace verger::controller::redactions {

/// Result: {"records", "to_do", "missing": [text]}.
std::unique_ptr<StepKind> make_check_step();
/// Result: {"records"}.
std::unique_ptr<StepKind> make_agree_step();
/// Result: {"records", "blanked", "already", "missing": [text], "chunks": [{"from", "to",
/// "records", "md5_before", "md5_after"}], "removed": [name], "texts", "unsearchable",
/// "searched_files", "searched_bytes", "found": [text], "held": [text], "proven"}; of a node with
/// nothing to do
/// {"not_needed", "records", "already"}.
std::unique_ptr<StepKind> make_redact_step();
/// The same of a node that runs, with "online", "read_back", "search_rounds", "changing": [path],
/// "held_searched".
std::unique_ptr<StepKind> make_online_redact_step();
/// Result: {"records", "to_do"}.
std::unique_ptr<StepKind> make_confirm_step();
/// Of restored files: planner/restore/restore_steps.h. Result: as the agent's, see
/// make_redact_step(); "found" is what could not be redacted.
std::unique_ptr<StepKind> make_redact_again_step(std::shared_ptr<const OperationSettings> settings);
/// Result: {"backups": [{"generation", "node", "repository", "started_at", "end_position"}],
/// "problems": [text]}.
std::unique_ptr<StepKind> make_backups_step();
/// Result: {"expired": [generation], "postponed"}, or {"not_needed", "expired": []}.
std::unique_ptr<StepKind> make_expire_step();

}  // namespace verger::controller::redactions
