#include "engine/tool/verify_command.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/scavenge/scavenge_state.h"
#include "engine/tool/detail/parallel.h"
#include "engine/tool/detail/verify_chunks.h"
#include "engine/tool/detail/verify_index.h"
#include "engine/tool/detail/verify_state.h"
#include "engine/tool/table.h"

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
  Findings findings;
  const Path directory = arguments.directory;
  VERGER_RETURN_IF_ERROR(check_directory(tool, directory));
  VERGER_TRY(const auto chunks,
             verify_chunks(tool, directory, arguments.chunk_size, how.threads, findings));
  IndexTotals totals;
  auto database = open_database(tool, arguments, log::Access::kReadOnly);
  if (!database) {
    findings.damage(directory, std::nullopt,
                    "index and log are not compared: " + database.error().message);
  } else if (auto compared = verify_index(tool, **database, how, findings); compared) {
    totals = *compared;
  } else {
    findings.damage(directory, std::nullopt,
                    "comparing index and log ended early: " + compared.error().message);
  }
  const auto index =
      arguments.index_directory.empty() ? directory / "index" : Path(arguments.index_directory);
  if (const auto state = verify_state(tool, index, how, findings); !state) {
    findings.damage(scavenge::ScavengeState::path_in(index), std::nullopt,
                    "not looked at: " + state.error().message);
  }
  findings.print(tool);
  const auto damage = findings.damage_count();
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"finding", "summary"},
                                       {"damage", damage},
                                       {"chunkFiles", chunks.files},
                                       {"chunkBytes", chunks.bytes},
                                       {"records", chunks.records},
                                       {"events", totals.events},
                                       {"tables", totals.tables},
                                       {"entries", totals.entries},
                                       {"entriesWithoutRecord", totals.without_record},
                                       {"recordsWithoutEntry", totals.without_entry}}
                    .dump()
             << '\n';
  } else {
    tool.out << fmt::format(
        "{} chunk files ({}), {} records; {} index tables, {} entries, {} events\n", chunks.files,
        human_bytes(chunks.bytes), human_count(chunks.records), totals.tables,
        human_count(totals.entries), human_count(totals.events));
    if (totals.without_record + totals.without_entry > 0) {
      tool.out << fmt::format(
          "left by scavenges, and normal: {} entries without a record, {} records without an "
          "entry\n",
          human_count(totals.without_record), human_count(totals.without_entry));
    }
    tool.out << (damage == 0 ? "no damage found\n"
                             : fmt::format("damage found in {} places\n", human_count(damage)));
  }
  return damage == 0 ? kExitDone : kExitFailed;
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
                      "For sorting more than 8 million events, and for a copy of scavenging.db "
                      "(default: the system's directory for temporary files)");
  command->footer("Example:\n  verger-db verify /var/lib/eventstore");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return run(tool, *arguments); };
  });
}

}  // namespace verger::tool
