#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db estimate DIR`: what the next scavenge would remove, and what it needs for it.
void add_estimate_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
