#include "engine/tool/index_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/index/rebuild_job.h"
#include "engine/tool/progress.h"
#include "engine/tool/table.h"

namespace verger::tool {

namespace {

Result<int> rebuild(ToolContext& tool, const DatabaseArguments& arguments,
                    const IndexSettings& settings) {
  VERGER_TRY(const auto database, open_database(tool, arguments, log::Access::kWrite, settings));
  const auto start = tool.clock.monotonic();
  auto& index = database->stream_index();
  {
    constexpr int kThreads = 2;
    index::IndexRebuildJob job(index, database->transaction_log(), kNoPosition, kThreads);
    Progress progress(tool, "index rebuild", 0, Progress::Unit::kEvents);
    for (;;) {
      VERGER_TRY(const auto outcome, job.step({.units = 65'536}));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        break;
      }
      progress.update(job.records_read());
    }
  }
  const auto seconds = std::chrono::duration<double>(tool.clock.monotonic() - start).count();
  std::uint64_t entries = 0;
  for (const auto& slot : index.tables()) {
    entries += slot.table->count();
  }
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"tables", index.tables().size()},
                                       {"entries", entries},
                                       {"memoryEntries", index.memory_entry_count()},
                                       {"seconds", seconds}}
                    .dump()
             << '\n';
  } else {
    tool.out << fmt::format("index {} rebuilt: {} entries in {} tables ({:.1f} s)\n",
                            index.directory().string(), human_count(entries), index.tables().size(),
                            seconds);
    if (index.memory_entry_count() > 0) {
      tool.out << fmt::format(
          "{} more entries do not fill a table; they are read from the log at "
          "opening\n",
          human_count(index.memory_entry_count()));
    }
  }
  return kExitDone;
}

}  // namespace

void add_index_command(CLI::App& program, Action& chosen) {
  auto arguments = std::make_shared<DatabaseArguments>();
  auto settings = std::make_shared<IndexSettings>();
  auto* index = program.add_subcommand("index", "Work on the index");
  index->require_subcommand(1);
  index->fallthrough();
  auto* command = index->add_subcommand("rebuild", "Make the index anew from the log");
  add_database_arguments(*command, *arguments, /*writes=*/true);
  add_index_settings(*command, *settings);
  command->footer(std::string(kWhoseFiles) +
                  "Example:\n  verger-db index rebuild /var/lib/eventstore");
  command->callback([arguments, settings, &chosen] {
    chosen = [arguments, settings](ToolContext& tool) {
      return rebuild(tool, *arguments, *settings);
    };
  });
}

}  // namespace verger::tool
