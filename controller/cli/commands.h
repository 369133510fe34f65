#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controller/cli/cli_context.h"

namespace CLI {
class App;
}  // namespace CLI

namespace verger::cli {

/// Chosen by parsing; run afterwards with the context.
using Command = std::function<int(const CliContext&)>;

/// Where a command that needs no controller prints.
struct LocalContext {
  std::ostream& out;
  std::ostream& err;
  bool json = false;
  std::optional<std::size_t> width{};  ///< of the terminal; nullopt: `out` is none
};
/// A command that works on the files of this machine, without a controller.
using LocalCommand = std::function<int(const LocalContext&)>;
/// `verger cert`: on this machine, and of clusters.
void add_cert_commands(CLI::App& app, LocalCommand& chosen_local, Command& chosen);
/// `verger cert` takes the options of the known generation tool with one hyphen, too: -out is
/// --out.
std::vector<std::string> with_two_hyphens(std::vector<std::string> arguments);

/// Each adds the subcommands of one noun to `app` and stores the chosen one in `chosen`.
void add_cluster_commands(CLI::App& app, Command& chosen);
void add_plan_commands(CLI::App& app, Command& chosen);
/// restore: plan, apply, discard-old.
void add_restore_commands(CLI::App& app, Command& chosen);
void add_run_commands(CLI::App& app, Command& chosen);
void add_policy_commands(CLI::App& app, Command& chosen);
/// notify: test, of the recipients of a policy.
void add_notify_commands(CLI::App& app, Command& chosen);
void add_agent_commands(CLI::App& app, Command& chosen);
/// Backups of clusters, over their agents.
void add_backup_commands(CLI::App& app, Command& chosen);
/// redact: plan, apply.
void add_redaction_commands(CLI::App& app, Command& chosen);
/// verify, heal: a plan and its run.
void add_verify_command(CLI::App& app, Command& chosen);
void add_heal_command(CLI::App& app, Command& chosen);
/// admin: the journal's size and compaction.
void add_journal_commands(CLI::App& app, Command& chosen);
void add_token_commands(CLI::App& app, Command& chosen);
void add_audit_commands(CLI::App& app, Command& chosen);
/// Everything the API shows, with verdicts and remedies.
void add_doctor_command(CLI::App& app, Command& chosen);
/// login and profile; `ca_file` is that of all commands, and outlives `chosen_local`.
void add_login_commands(CLI::App& app, LocalCommand& chosen_local, const std::string& ca_file);
/// Of this program, and of vergerd.
void add_version_command(CLI::App& app, LocalCommand& chosen_local, Command& chosen);
/// Last, so that it knows all commands.
void add_completion_command(CLI::App& app, Command& chosen);
/// The manual pages; after all others, too.
void add_man_command(CLI::App& app, LocalCommand& chosen_local);
/// discover, below `verger cluster`.
void add_cluster_discovery(CLI::App& cluster, Command& chosen);
/// pause and resume, below `verger cluster`.
void add_cluster_intents(CLI::App& cluster, Command& chosen);

/// grow, below `verger cluster`.
void add_cluster_growth(CLI::App& cluster, Command& chosen);

/// The whole program: parses, calls, prints. `arguments` without the program's name.
int run_verger(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace verger::cli
