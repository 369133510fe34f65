#pragma once

#include "engine/tool/detail/expected_entries.h"
#include "engine/tool/detail/findings.h"

namespace verger::tool {

/// Looks for damage in a database's chunks, checkpoints, index and scavenge state, adds what it
/// finds to `findings`, and prints them all with a summary. The exit code: kExitFailed where there
/// is damage. Error: the directory cannot be read at all.
Result<int> verify_database(ToolContext& tool, const DatabaseArguments& arguments,
                            const VerifyOptions& how, Findings& findings);

}  // namespace verger::tool
