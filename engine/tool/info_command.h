#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db info DIR`: chunks, checkpoints, epochs, scavenge points, index tables.
void add_info_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
