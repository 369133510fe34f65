#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db diff A B`: where two databases differ first.
void add_diff_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
