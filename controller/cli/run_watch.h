#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/cli_context.h"

namespace verger::cli {

/// Follows a run and prints a line for each change of a step, and for its progress at most every
/// five seconds; with -o json each event of the run as one line. Returns when the run has ended
/// (its exit code), is paused or waits for a person (kStillWaiting), or `limit` has passed. SIGINT
/// ends the program, with a note that the run continues.
int watch_run(const CliContext& context, const std::string& id, std::chrono::seconds limit);

/// 0 done, 1 failed or done with differences, 3 cancelled or paused, 4 anything that has not ended.
int exit_code_of(const nlohmann::json& run);

}  // namespace verger::cli
