#pragma once

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/cli_context.h"

namespace verger::cli {

/// A plan of the API, for people: what it will do with which parameters, how long that takes, what
/// it needs, and what is checked before each step.
void print_plan(const CliContext& context, const nlohmann::json& plan);

}  // namespace verger::cli
