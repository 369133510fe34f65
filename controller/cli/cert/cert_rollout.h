#pragma once

#include "controller/cli/commands.h"

namespace verger::cli {

/// `verger cert plan` and `verger cert rollout`
void add_cert_rollout(CLI::App& cert, Command& chosen);

}  // namespace verger::cli
