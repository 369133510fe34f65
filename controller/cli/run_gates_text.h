#pragma once

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/commands.h"

namespace verger::cli {

/// The answer of /runs/{id}/gates: a table for each step.
void print_run_gates(const CliContext& context, const nlohmann::json& gates);

}  // namespace verger::cli
