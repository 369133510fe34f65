#pragma once

#include "controller/cli/commands.h"

namespace verger::cli {

void add_cert_inspect(CLI::App& cert, LocalCommand& chosen);

}  // namespace verger::cli
