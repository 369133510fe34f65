#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/rekey_job.h"
#include "engine/backup/repository_config.h"
#include "engine/repositories/open_store.h"
#include "engine/tool/backup_command.h"
#include "engine/tool/detail/backup_text.h"
#include "engine/tool/detail/drive_job.h"
#include "engine/tool/stop_signals.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

struct RekeyArguments {
  std::string repository;
  std::uint64_t rate = 0;  ///< MiB a second
};

Result<int> rekey(ToolContext& tool, const RekeyArguments& arguments) {
  VERGER_TRY(const auto config, backup::repository_config_of(tool.files, arguments.repository));
  if (config.key_file.empty()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: has no keyFile; give the repository file (NAME.json) of an "
                             "encrypted repository",
                             arguments.repository)};
  }
  VERGER_TRY(const auto store,
             backup::open_sealed_store(tool.files, config, tool.clock, tool.random, tool.log,
                                       &StopSignals::requested));
  VERGER_TRY(auto repository, backup::Repository::open(*store, backup::Repository::Create::kNo));
  backup::RekeyJob job(*store, repository, tool.clock, tool.random);
  const StopSignals signals;
  DriveOptions drive;
  drive.bytes_per_second = arguments.rate << 20U;
  drive.bytes = [&] { return job.progress().bytes; };
  VERGER_RETURN_IF_ERROR(drive_job(tool, job, drive));
  const auto& done = job.progress();
  const auto& id = store->sealing().keys->writing().id;
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"key", id},
                                       {"objects", done.objects},
                                       {"rewritten", done.rewritten},
                                       {"bytes", done.bytes}}
                    .dump()
             << '\n';
  } else {
    tool.out << fmt::format(
        "{} objects: {} were under another key, and are written again with \"{}\" ({})\n",
        human_count(done.objects), human_count(done.rewritten), id, human_bytes(done.bytes));
  }
  return kExitDone;
}

}  // namespace

void add_backup_rekey_command(CLI::App& backup, Action& chosen) {
  auto arguments = std::make_shared<RekeyArguments>();
  auto* command = backup.add_subcommand(
      "rekey", "Write again with the first key of the key file what is under another one");
  command->add_option("REPOSITORY", arguments->repository, std::string(kRepositoryText))
      ->required();
  command->add_option("--rate", arguments->rate, "At most so many MiB a second (default: no limit)")
      ->check(check_positive<std::uint64_t>);
  command->footer(
      "Interrupted, the same command continues. Afterwards the other keys may be removed from the\n"
      "key file, once no backup runs that has begun before.\n"
      "Example:\n  verger-db backup rekey /etc/verger/backups/orders.json");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return rekey(tool, *arguments); };
  });
}

}  // namespace verger::tool
