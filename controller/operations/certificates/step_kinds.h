#pragma once

#include <memory>

#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

/// The kinds of steps of a change of certificates, each a file of its own. Parameters, values and
/// what undoes what: planner/certificates/certificate_steps.h. What is called "change" at the
/// agents is the run's id. No key, and no password, is in anything that these journal.
namespace verger::controller::certificate_change {

/// Has each agent make a key and a request, has it signed, one node per look, and brings what was
/// signed to the agents. Result: {"set", "nodes": {NAME: {"serial", "not_after"}}}.
std::unique_ptr<StepKind> make_obtain_step(std::shared_ptr<const OperationSettings> settings);
/// Checks what is to be staged, as the preflight does. Leaves the value kChecked. Result:
/// {"nodes": {NAME: {"serial", "serial_before", "not_after"}}, "warnings"}. Its undo is the proof
/// that all nodes show what they showed before, and accept each other.
std::unique_ptr<StepKind> make_check_step();
/// Result: {"serial", "not_after"}. Leaves the value restore_value(NODE).
std::unique_ptr<StepKind> make_stage_step();
/// Result: {"phase", "files", "serial", "serial_before", "proven", "not_proven"}.
std::unique_ptr<StepKind> make_switch_step();
/// Result: {"phase", "handshakes", "proven_at", "seconds_from_first_switch", "not_proven"}.
std::unique_ptr<StepKind> make_prove_step();
/// Result: {"watched_seconds", "troubles"}.
std::unique_ptr<StepKind> make_watch_step();

}  // namespace verger::controller::certificate_change
