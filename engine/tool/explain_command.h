#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db explain DIR STREAM[@N]`: why events stay or go.
void add_explain_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
