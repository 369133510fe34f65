#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db generate DIR`: writes a database of made-up events.
void add_generate_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
