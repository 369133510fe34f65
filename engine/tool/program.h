#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db` without the process around it: parses, runs, prints errors; the exit code.
int run_program(int argc, const char* const* argv, ToolContext& tool);

}  // namespace verger::tool
