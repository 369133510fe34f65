#include "engine/tool/program.h"

#include <ostream>

#include <CLI/CLI.hpp>

#include "engine/base/nearest_name.h"
#include "engine/tool/backup_command.h"
#include "engine/tool/diff_command.h"
#include "engine/tool/digest_command.h"
#include "engine/tool/estimate_command.h"
#include "engine/tool/explain_command.h"
#include "engine/tool/generate_command.h"
#include "engine/tool/index_command.h"
#include "engine/tool/info_command.h"
#include "engine/tool/man_command.h"
#include "engine/tool/records_command.h"
#include "engine/tool/redact_command.h"
#include "engine/tool/restore_command.h"
#include "engine/tool/scavenge_command.h"
#include "engine/tool/stats_command.h"
#include "engine/tool/table.h"
#include "engine/tool/verify_command.h"

namespace verger::tool {

int run_program(int argc, const char* const* argv, ToolContext& tool) {
  CLI::App program(
      "Works on the database directory of an EventStoreDB or KurrentDB node that no server has "
      "open.");
  program.name("verger-db");
  program.require_subcommand(1);
  program.fallthrough();
  program.footer(
      "Exit codes: 0 done, 1 failed or damage or differences found, 2 refused, 3 stopped, 64 wrong "
      "usage.\nExample:\n  verger-db info /var/lib/eventstore -o json");
  program.set_version_flag("--version", std::string("verger-db ") + VERGER_VERSION);
  std::string output = "table";
  program.add_option("-o,--output", output, "table, or json: one object per line for lists")
      ->check(CLI::IsMember({"table", "json"}));
  std::string progress = "auto";
  program
      .add_option("--progress", progress,
                  "auto: a line on stderr where that is a terminal; json: an object per line on "
                  "stderr; none")
      ->check(CLI::IsMember({"auto", "json", "none"}));
  Action chosen;
  add_info_command(program, chosen);
  add_records_command(program, chosen);
  add_digest_command(program, chosen);
  add_verify_command(program, chosen);
  add_stats_command(program, chosen);
  add_diff_command(program, chosen);
  add_index_command(program, chosen);
  add_estimate_command(program, chosen);
  add_explain_command(program, chosen);
  add_scavenge_command(program, chosen);
  add_redact_command(program, chosen);
  add_backup_command(program, chosen);
  add_restore_command(program, chosen);
  add_generate_command(program, chosen);
  add_man_command(program, chosen);

  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      program.exit(error, tool.out, tool.err);  // --help
      return kExitDone;
    }
    std::string reason = error.what();
    const auto named = [&](CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && program.get_subcommands(named).empty()) {
      std::vector<std::string> commands;
      for (const auto* command : program.get_subcommands([](const CLI::App*) { return true; })) {
        commands.push_back(command->get_name());
      }
      const auto meant = nearest_name(argv[1], commands);
      reason = fmt::format("there is no command '{}'{}", argv[1],
                           meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
    }
    tool.err << "verger-db: " << printable(reason)
             << "\nSee `verger-db --help`, or `verger-db COMMAND --help`.\n";
    return kExitUsage;
  }
  tool.json = output == "json";
  tool.progress = progress == "json"   ? ProgressStyle::kJson
                  : progress == "none" ? ProgressStyle::kNone
                                       : ProgressStyle::kAuto;
  const auto code = chosen(tool);
  if (!code) {
    tool.err << "verger-db: " << printable(code.error().message) << '\n';
    if (code.error().code == Errc::kCorruption) {
      tool.err
          << "`verger-db verify DIR` lists all damage. Chunk files come back from another node "
             "or a backup, the index by `verger-db index rebuild DIR`; without the directory "
             "index/scavenging a scavenge begins anew.\n";
    }
    return exit_code_of(code.error());
  }
  tool.out.flush();
  if (!tool.out) {
    tool.err << "verger-db: the output could not be written\n";
    return kExitFailed;
  }
  return *code;
}

}  // namespace verger::tool
