#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db scavenge DIR`: removes what streams no longer keep, up to one scavenge point. Resumes
/// an unfinished scavenge. SIGINT and SIGTERM stop it; what is done stays, exit code 3.
void add_scavenge_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
