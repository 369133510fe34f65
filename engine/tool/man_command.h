#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db man DIR`: writes the manual pages of all commands.
void add_man_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
