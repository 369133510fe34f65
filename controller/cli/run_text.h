#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/cli_context.h"

/// A run of the API, for people.
namespace verger::cli {

/// As much of an id as commands need.
std::string short_id(const std::string& id);
/// True for a stage that is only for a node that leads when its turn comes, until that happens.
bool is_conditional_and_unused(const nlohmann::json& stage);
/// "executing chunks, 12 of 40 chunks (30 %), 523 chunks/h, 1.2 GiB freed"; empty: no step acts.
std::string progress_text(const nlohmann::json& step);
/// What is known of a step beside its state: why it waits, how far it is, why it was not needed.
std::string step_text(const nlohmann::json& step);
/// What an intent ("pause", "skip", ...) has changed, of the run as the API answers at once: its
/// state is that of before where an intent takes effect only at the run's next look.
std::string intent_text(const std::string& intent, const nlohmann::json& run,
                        const std::string& node, bool force);
/// "attempt 1 errored 2026-11-22T14:43:47Z: No space left on device"
std::string attempt_text(const nlohmann::json& outcome);
/// "expected to end between A and B", "overdue; earliest end A", and where the windows are closed
/// when they open; empty: nothing can be said.
std::string expected_end_text(const nlohmann::json& run);
/// An alert with when it was raised and cleared.
std::string alert_text(const nlohmann::json& alert);

/// The run with its steps, and its report once it has ended.
void print_run(const CliContext& context, const nlohmann::json& run);

}  // namespace verger::cli
