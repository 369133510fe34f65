#pragma once

#include "nodeagent/daemon/agent_options.h"

namespace verger::agent {

/// Whether the options fit together; certificates and roots must have been settled. Errors:
/// kInvalidArgument, naming the option and what it takes.
Result<void> check(const ProgramOptions& options);

}  // namespace verger::agent
