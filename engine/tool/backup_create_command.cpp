#include <filesystem>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/backup_job.h"
#include "engine/tool/backup_command.h"
#include "engine/tool/detail/backup_text.h"
#include "engine/tool/detail/drive_job.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

struct CreateBackupArguments {
  std::string directory;
  std::string index_directory;
  std::string repository;
  std::string node;
  std::string cluster;
  std::string server_version;
  std::string parent;
  std::string digests = "none";
  bool full = false;
  bool frozen = false;
  bool whole_log = false;
  bool no_scavenge_runs = false;
  bool assume_stopped = false;
  std::uint64_t rate = 0;  ///< MiB a second
  int threads = 2;
};

std::string absolute_directory(const std::string& directory) {
  std::error_code error;
  const auto path = std::filesystem::absolute(directory, error).lexically_normal();
  auto text = error ? directory : path.string();
  if (text.size() > 1 && text.ends_with('/')) {
    text.pop_back();
  }
  return text;
}

Result<std::optional<backup::Manifest>> choose_parent(const CreateBackupArguments& arguments,
                                                      const backup::Repository& repository,
                                                      const std::string& node) {
  if (arguments.full) {
    return std::optional<backup::Manifest>();
  }
  if (!arguments.parent.empty()) {
    VERGER_TRY(auto manifest, repository.load(arguments.parent, node));
    return std::optional(std::move(manifest));
  }
  return backup::find_parent(repository, node);
}

void print_created(ToolContext& tool, const backup::Manifest& manifest,
                   const backup::BackupProgress& progress, double seconds) {
  if (tool.json) {
    auto object = describe_backup(manifest);
    object["copiedBytes"] = progress.copied;
    object["seconds"] = seconds;
    tool.out << object.dump() << '\n';
    return;
  }
  tool.out << fmt::format(
      "backup {}: {}, {} node, log up to {} ({:.1f} s)\n  {} in {} files; {} copied, {} reused\n",
      manifest.id, kind_of_backup(manifest), manifest.source.state, manifest.positions.end, seconds,
      human_bytes(manifest.stored_bytes()), human_count(manifest.files.size()),
      human_bytes(progress.copied), human_bytes(progress.reused));
  for (const auto& warning : manifest.warnings) {
    tool.out << "  warning: " << warning << '\n';
  }
}

Result<int> create_backup(ToolContext& tool, const CreateBackupArguments& arguments) {
  const Path directory = arguments.directory;
  VERGER_RETURN_IF_ERROR(check_directory(tool, directory));
  backup::BackupOptions options;
  options.source.directory = directory;
  options.source.index_directory = arguments.index_directory;
  options.source.scavenge_ruled_out = arguments.no_scavenge_runs;
  options.source.state = backup::SourceState::kFrozen;
  std::unique_ptr<FileLock> lock;
  if (!arguments.frozen) {
    VERGER_TRY(auto found, backup::find_state(tool.files, directory, arguments.assume_stopped));
    options.source.state = found.state;
    lock = std::move(found.lock);
  }
  options.node.directory = absolute_directory(arguments.directory);
  options.node.host = host_name();
  options.node.node = arguments.node.empty()
                          ? fmt::format("{}:{}", options.node.host, options.node.directory)
                          : arguments.node;
  options.node.cluster = arguments.cluster;
  options.node.server_version = arguments.server_version;
  options.digests = arguments.digests == "readable"  ? backup::WantedDigests::kReadable
                    : arguments.digests == "logical" ? backup::WantedDigests::kLogical
                                                     : backup::WantedDigests::kNone;
  options.whole_log = arguments.whole_log;
  options.lanes = static_cast<std::size_t>(arguments.threads);

  VERGER_TRY(const auto store, open_repository_store(tool, arguments.repository));
  VERGER_TRY(auto repository,
             backup::Repository::open(*store, backup::Repository::Create::kIfMissing));
  VERGER_TRY(options.parent, choose_parent(arguments, repository, options.node.node));
  const auto runner = scavenge::make_thread_runner(arguments.threads);
  backup::BackupJob job(tool.files, repository, std::move(options), tool.clock, tool.random,
                        tool.log, *runner);
  const StopSignals signals;
  const auto start = tool.clock.monotonic();
  {
    std::optional<Progress> progress;
    std::uint64_t total = 0;
    DriveOptions drive;
    drive.bytes_per_second = arguments.rate << 20U;
    drive.bytes = [&] { return job.progress().copied; };
    drive.tick = [&] {
      if (!progress || job.progress().total > total) {
        total = job.progress().total;
        progress.emplace(tool, "backup", total, Progress::Unit::kBytes, job.progress().done);
      }
      progress->update(job.progress().done);
    };
    if (auto driven = drive_job(tool, job, drive); !driven) {
      if (driven.error().code == Errc::kCancelled) {
        tool.err << "verger-db: stopped; nothing is listed as a backup, and the next one does not "
                    "copy again what was stored\n";
        return kExitStopped;
      }
      return driven.error();
    }
  }
  print_created(tool, job.manifest(), job.progress(),
                std::chrono::duration<double>(tool.clock.monotonic() - start).count());
  return kExitDone;
}

}  // namespace

void add_backup_create_command(CLI::App& backup, Action& chosen) {
  auto arguments = std::make_shared<CreateBackupArguments>();
  auto* command = backup.add_subcommand(
      "create", "Copy a database, of a stopped or a running node, into a repository");
  command->add_option("DIR", arguments->directory, "Database directory (chunk files and *.chk)")
      ->required();
  command->add_option("--index", arguments->index_directory,
                      "Index directory (default: DIR/index)");
  command->add_flag(
      "--assume-stopped", arguments->assume_stopped,
      "The node is stopped: do not search /proc for a server that has the files open");
  command
      ->add_option("--to", arguments->repository,
                   std::string(kRepositoryText) + "; made when missing")
      ->required()
      ->type_name("REPOSITORY");
  command->add_option("--node", arguments->node,
                      "Name of the node: backups of one node share files (default: host and DIR)");
  command->add_option("--cluster", arguments->cluster, "Name of the cluster, for the manifest");
  command->add_option("--server-version", arguments->server_version,
                      "Version of the server, for the manifest");
  auto* full = command->add_flag(
      "--full", arguments->full,
      "Read every file (default: what the node's latest backup has is not read again)");
  command->add_option("--parent", arguments->parent, "Differential to this backup")
      ->type_name("ID")
      ->excludes(full);
  command->add_flag("--frozen", arguments->frozen,
                    "DIR is a disk snapshot: nothing changes it, nothing is locked");
  command->add_flag("--whole-log", arguments->whole_log,
                    "Of a running node: up to writer.chk, not only up to chaser.chk");
  command->add_flag("--no-scavenge-runs", arguments->no_scavenge_runs,
                    "Of a running node: no scavenge runs, although one that was killed left files");
  command
      ->add_option("--digests", arguments->digests,
                   "Digests for the manifest: none, logical, or readable (both), which read "
                   "the log once more")
      ->check(CLI::IsMember({"none", "logical", "readable"}));
  command->add_option("--rate", arguments->rate, "At most so many MiB a second (default: no limit)")
      ->check(check_positive<std::uint64_t>);
  command->add_option("--threads", arguments->threads, "Files copied side by side")
      ->check(CLI::Range(1, 16));
  command->footer(
      "Refused while a scavenge or a redaction runs, and for a running server with kurrent.ddb.\n"
      "Example:\n  verger-db backup create /var/lib/eventstore --to /backup/orders");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return create_backup(tool, *arguments); };
  });
}

}  // namespace verger::tool
