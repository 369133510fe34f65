#include "engine/tool/verify_command.h"

#include <filesystem>

#include <CLI/CLI.hpp>

#include "engine/tool/detail/parallel.h"
#include "engine/tool/detail/verify_database.h"
#include "engine/tool/stop_signals.h"

namespace verger::tool {

namespace {

struct VerifyArguments {
  DatabaseArguments database;
  int threads = default_threads();
  std::string scratch;
};

Result<int> run(ToolContext& tool, const VerifyArguments& options) {
  const auto& arguments = options.database;
  const VerifyOptions how{.threads = options.threads,
                          .scratch = options.scratch.empty()
                                         ? std::filesystem::temp_directory_path()
                                         : Path(options.scratch)};
  const StopSignals signals;
  verify::Findings findings;
  return verify_database(tool, arguments, how, findings);
}

}  // namespace

void add_verify_command(CLI::App& program, Action& chosen) {
  auto arguments = std::make_shared<VerifyArguments>();
  auto* command = program.add_subcommand(
      "verify", "Look for damage in chunks, checkpoints and index; exit code 1 when there is any");
  add_database_arguments(*command, arguments->database, /*writes=*/false);
  command
      ->add_option("--threads", arguments->threads,
                   "Chunks and tables looked at side by side (default: one for each processor)")
      ->check(CLI::Range(1, 64));
  command->add_option("--tmp-dir", arguments->scratch,
                      "For sorting more than 4 million events, and for a copy of scavenging.db "
                      "(default: the system's directory for temporary files)");
  command->footer("Example:\n  verger-db verify /var/lib/eventstore");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return run(tool, *arguments); };
  });
}

}  // namespace verger::tool
