#pragma once

#include "nodeagent/daemon/program.h"

namespace verger::agent {

/// Role both: the embedded node as a server that its agent stops and starts.
void control_own_node(Program& program, Log& log);

/// Opens the agent over the embedded node, or over a server in another process, and serves it.
Result<void> start_agent(Program& program, Log& log);

}  // namespace verger::agent
