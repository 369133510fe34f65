#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/commands.h"

namespace CLI {
class App;
}  // namespace CLI

/// The policies by which the nodes of a cluster are backed up, for people.
namespace verger::cli {

/// Of the API's policies those of the operation backup that select the cluster now.
nlohmann::json backup_policies_of(const nlohmann::json& policies, const std::string& cluster);
/// `policies`: of one cluster, as backup_policies_of() gives them.
void print_backup_policies(const CliContext& context, const nlohmann::json& policies);

/// policy, below `verger backup`.
void add_backup_policies(CLI::App& backup, Command& chosen);

}  // namespace verger::cli
