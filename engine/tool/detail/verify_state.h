#pragma once

#include "engine/tool/detail/expected_entries.h"
#include "engine/tool/detail/findings.h"

namespace verger::tool {

/// Looks for damage in scavenging.db, in a copy of it below `options.scratch`. Error: the copy
/// cannot be made.
Result<void> verify_state(ToolContext& tool, const Path& index_directory,
                          const VerifyOptions& options, Findings& findings);

}  // namespace verger::tool
