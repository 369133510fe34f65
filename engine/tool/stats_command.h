#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db stats DIR`: streams by size, retention settings, size classes.
void add_stats_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
