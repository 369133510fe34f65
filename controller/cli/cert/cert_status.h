#pragma once

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/commands.h"

namespace verger::cli {

/// An answer of the API about the certificates of a cluster, for people.
void print_certificates(const CliContext& context, const nlohmann::json& answer);

/// `verger cert status`
void add_cert_status(CLI::App& cert, Command& chosen);

}  // namespace verger::cli
