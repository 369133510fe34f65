#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db index rebuild DIR`: makes the index anew from the log.
void add_index_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
