#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db digest DIR`: the logical and the readable digest.
void add_digest_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
