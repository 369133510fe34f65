#include <array>
#include <filesystem>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/backup_job.h"
#include "engine/backup/disk_snapshots.h"
#include "engine/backup/repository_config.h"
#include "engine/base/database_files.h"
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
  std::string snapshot_command;
  std::string snapshot_state;
  int snapshot_limit = 600;  ///< seconds
  std::uint64_t rate = 0;    ///< MiB a second
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

Error backup_stopped() {
  return {Errc::kCancelled,
          "stopped; nothing is listed as a backup, and the next one does not copy again what was "
          "stored"};
}

/// The snapshots that a backup is made of, and deleted at its end.
class SnapshotsOfBackup {
 public:
  explicit SnapshotsOfBackup(ToolContext& tool) : tool_(tool) {}

  Result<backup::BackupSource> make(const CreateBackupArguments& arguments) {
    if (!is_machine_disk(tool_.files)) {
      return Error{Errc::kUnsupported, "disk snapshots are of the machine's disk"};
    }
    const Path database = absolute_directory(arguments.directory);
    const Path index = arguments.index_directory.empty()
                           ? database / "index"
                           : Path(absolute_directory(arguments.index_directory));
    VERGER_TRY(snapshots_, backup::DiskSnapshots::open(
                               tool_.files,
                               {.program = arguments.snapshot_command,
                                .state = arguments.snapshot_state.empty()
                                             ? database / "verger-snapshots"
                                             : Path(absolute_directory(arguments.snapshot_state)),
                                .limit = std::chrono::seconds(arguments.snapshot_limit)},
                               tool_.clock, tool_.random, tool_.log));
    backup::MakeSnapshotsJob job(*snapshots_, database, index);
    VERGER_RETURN_IF_ERROR(drive_job(tool_, job, {}));
    return snapshots_->source();
  }

  /// Also after a signal.
  Result<void> remove() {
    while (snapshots_) {
      VERGER_TRY(const auto outcome, snapshots_->step_delete());
      if (outcome.kind == StepOutcome::Kind::kDone) {
        snapshots_.reset();
      }
      // As long as the job wants to wait for the snapshot program; it ends by its limit.
      std::this_thread::sleep_for(outcome.rest);
    }
    return {};
  }

 private:
  ToolContext& tool_;
  std::unique_ptr<backup::DiskSnapshots> snapshots_;
};

Result<int> copy_database(ToolContext& tool, const CreateBackupArguments& arguments,
                          backup::BackupSource source) {
  backup::BackupOptions options;
  options.source = std::move(source);
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

  VERGER_TRY(const auto config, backup::repository_config_of(tool.files, arguments.repository));
  VERGER_RETURN_IF_ERROR(backup::refuse_inside(
      config, std::array<Path, 2>{options.node.directory, options.source.index()}));
  VERGER_TRY(const auto store, open_repository_store(tool, arguments.repository));
  VERGER_TRY(auto repository,
             backup::Repository::open(*store, backup::Repository::Create::kIfMissing));
  VERGER_TRY(options.parent, choose_parent(arguments, repository, options.node.node));
  const auto runner = scavenge::make_thread_runner(arguments.threads);
  backup::BackupJob job(tool.files, repository, std::move(options), tool.clock, tool.random,
                        tool.log, *runner);
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
      return driven.error().code == Errc::kCancelled ? backup_stopped() : driven.error();
    }
  }
  print_created(tool, job.manifest(), job.progress(),
                std::chrono::duration<double>(tool.clock.monotonic() - start).count());
  return kExitDone;
}

Result<int> copy_snapshot(ToolContext& tool, const CreateBackupArguments& arguments) {
  SnapshotsOfBackup snapshots(tool);
  auto source = snapshots.make(arguments);
  auto made = source ? copy_database(tool, arguments, *std::move(source))
                     : Result<int>(source.error().code == Errc::kCancelled ? backup_stopped()
                                                                           : source.error());
  if (auto removed = snapshots.remove(); !removed) {
    if (made) {
      return removed.error().within("the backup is made");
    }
    tool.err << fmt::format("verger-db: {}\n", removed.error().message);
  }
  return made;
}

Result<int> copy_directory(ToolContext& tool, const CreateBackupArguments& arguments) {
  backup::BackupSource source{.directory = arguments.directory,
                              .index_directory = arguments.index_directory,
                              .state = backup::SourceState::kFrozen,
                              .scavenge_ruled_out = arguments.no_scavenge_runs};
  std::unique_ptr<FileLock> lock;
  if (!arguments.frozen) {
    VERGER_TRY(auto found,
               backup::find_state(tool.files, source.directory, arguments.assume_stopped));
    source.state = found.state;
    lock = std::move(found.lock);
  }
  return copy_database(tool, arguments, std::move(source));
}

Result<int> create_backup(ToolContext& tool, const CreateBackupArguments& arguments) {
  VERGER_RETURN_IF_ERROR(check_directory(tool, arguments.directory));
  const StopSignals signals;
  auto made = arguments.snapshot_command.empty() ? copy_directory(tool, arguments)
                                                 : copy_snapshot(tool, arguments);
  if (!made && made.error().code == Errc::kCancelled) {
    tool.err << fmt::format("verger-db: {}\n", made.error().message);
    return kExitStopped;
  }
  return made;
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
  auto* frozen = command->add_flag("--frozen", arguments->frozen,
                                   "DIR is a disk snapshot: nothing changes it, nothing is locked");
  auto* snapshot =
      command
          ->add_option("--snapshot-command", arguments->snapshot_command,
                       "Copy a disk snapshot of DIR, which this program makes (create) and removes "
                       "(delete); possible during a scavenge")
          ->type_name("PROGRAM")
          ->excludes(frozen);
  command
      ->add_option("--snapshot-state", arguments->snapshot_state,
                   "Directory for notes of snapshots that have to be deleted (default: "
                   "DIR/verger-snapshots)")
      ->type_name("DIR")
      ->needs(snapshot);
  command
      ->add_option("--snapshot-timeout", arguments->snapshot_limit,
                   "Seconds for each call of the program")
      ->check(CLI::Range(1, 86'400))
      ->needs(snapshot);
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
      "Refused while a scavenge or a redaction runs, and for a running server with kurrent.ddb,\n"
      "unless a disk snapshot is copied (--snapshot-command).\n"
      "Example:\n  verger-db backup create /var/lib/eventstore --to /backup/orders");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return create_backup(tool, *arguments); };
  });
}

}  // namespace verger::tool
