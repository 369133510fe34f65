#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db redact DIR`: blanks the data of events in the chunk files of a stopped node.
void add_redact_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
