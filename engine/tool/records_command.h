#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db records DIR`: the records of the log, one per line.
void add_records_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
