#pragma once

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/cli_context.h"

namespace verger::cli {

/// A plan of the API: what it will do with which parameters, how long that takes, what it needs,
/// and what is checked before each step. With --json, the plan itself on one line.
void print_plan(const CliContext& context, const nlohmann::json& plan);

}  // namespace verger::cli
