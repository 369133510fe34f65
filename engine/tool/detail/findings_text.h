#pragma once

#include "engine/tool/tool_context.h"
#include "engine/verify/findings.h"

namespace verger::tool {

/// Each finding on a line, or as a JSON object.
void print_findings(ToolContext& tool, const verify::Findings& findings);

}  // namespace verger::tool
