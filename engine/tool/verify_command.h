#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db verify DIR`: looks for damage in chunks, checkpoints and index.
void add_verify_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
