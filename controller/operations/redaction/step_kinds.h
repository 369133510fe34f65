#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

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
/// Result: {"backups": [{"generation", "node", "repository", "started_at", "end_position"}],
/// "problems": [text]}.
std::unique_ptr<StepKind> make_backups_step();

}  // namespace verger::controller::redactions
