#pragma once

#include <functional>
#include <string>

#include "controller/cli/api_client.h"

namespace CLI {
class App;
}  // namespace CLI

namespace verger::cli {

/// Chosen by parsing; run afterwards with the context.
using Command = std::function<int(const CliContext&)>;

/// Each adds the subcommands of one noun to `app` and stores the chosen one in `chosen`.
void add_cluster_commands(CLI::App& app, Command& chosen);
void add_plan_commands(CLI::App& app, Command& chosen);
void add_run_commands(CLI::App& app, Command& chosen);
void add_policy_commands(CLI::App& app, Command& chosen);
void add_agent_commands(CLI::App& app, Command& chosen);
/// admin: the journal's size and compaction.
void add_journal_commands(CLI::App& app, Command& chosen);
void add_token_commands(CLI::App& app, Command& chosen);
void add_audit_commands(CLI::App& app, Command& chosen);
/// Last, so that it knows all commands.
void add_completion_command(CLI::App& app, Command& chosen);
/// pause and resume, below `verger cluster`.
void add_cluster_intents(CLI::App& cluster, Command& chosen);

/// The whole program: parses, calls, prints. `arguments` without the program's name.
int run_verger(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace verger::cli
