#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db restore DIR`
void add_restore_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
