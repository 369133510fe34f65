#include "engine/tool/restore_command.h"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/kept_files.h"
#include "engine/backup/repository.h"
#include "engine/backup/restore_job.h"
#include "engine/base/database_files.h"
#include "engine/tool/detail/backup_text.h"
#include "engine/tool/detail/drive_job.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

struct RestoreArguments {
  std::string directory;
  std::string index_directory;
  std::string repository;
  std::string id = "latest";
  std::string node;
  std::string revert;   ///< a backup's id; empty: a restore
  std::string discard;  ///< the same
  bool keep_old = false;
  bool no_verify = false;
  bool assume_stopped = false;
  bool among_other_files = false;
  std::string rebuild_index = "auto";
  std::uint64_t rate = 0;
  int threads = 2;
};

backup::IndexSource index_source(const RestoreArguments& arguments) {
  return arguments.rebuild_index == "always"  ? backup::IndexSource::kLog
         : arguments.rebuild_index == "never" ? backup::IndexSource::kBackup
                                              : backup::IndexSource::kFaster;
}

/// What is made here has to be of use to the server: known before the first change.
Result<void> check_owner(const ToolContext& tool, const backup::RestoreOptions& options) {
  if (!is_machine_disk(tool.files)) {
    return {};
  }
  const Path directories[] = {options.directory, options.index()};
  return check_file_owner(directories);
}

/// A directory with files and without a database is seldom the one that was meant.
Result<void> refuse_other_directory(ToolContext& tool, const Path& directory) {
  const auto entries = tool.files.list(directory);
  if (!entries) {
    return entries.error().code == Errc::kNotFound ? Result<void>() : entries.error();
  }
  std::string other;
  for (const auto& entry : *entries) {
    const auto& name = entry.name;
    const bool of_database = name.starts_with("chunk-") || name.ends_with(".chk");
    if (of_database || name == "verger-restore") {
      return {};
    }
    constexpr std::array<std::string_view, 3> kEmptyDatabase = {"index", "lost+found",
                                                                "verger.lock"};
    if (std::ranges::find(kEmptyDatabase, name) == kEmptyDatabase.end() &&
        !name.starts_with("old-before-")) {
      other = name;
    }
  }
  if (other.empty()) {
    return {};
  }
  return Error{Errc::kRefused,
               fmt::format("{}: holds other files ({}), and no database; is it the directory that "
                           "you mean? If so, add --among-other-files. Nothing was changed",
                           directory.string(), printable(other))};
}

Result<void> drive_restore(ToolContext& tool, backup::RestoreJob& job, std::uint64_t rate) {
  std::optional<Progress> progress;
  std::string_view phase;
  std::uint64_t before = 0;  ///< bytes of the phases that are done
  std::uint64_t done = 0;
  DriveOptions drive;
  drive.bytes_per_second = rate << 20U;
  drive.bytes = [&] { return before + done; };
  drive.tick = [&] {
    const auto& now = job.progress();
    if (phase != now.phase) {
      phase = now.phase;
      before += std::exchange(done, 0);
      progress.emplace(tool, "restore: " + std::string(phase), now.total, Progress::Unit::kBytes,
                       now.done);
    }
    done = now.done;
    progress->update(done);
  };
  return drive_job(tool, job, drive);
}

void print_restored(ToolContext& tool, const RestoreArguments& arguments,
                    const backup::Manifest& manifest, const backup::RestoreJob& job,
                    double seconds) {
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"id", manifest.id},
                                       {"directory", arguments.directory},
                                       {"files", manifest.files.size()},
                                       {"bytes", manifest.stored_bytes()},
                                       {"resumedBytes", job.resumed_bytes()},
                                       {"index", job.rebuilds_index() ? "rebuilt" : "restored"},
                                       {"indexChoice", job.index_choice()},
                                       {"end", manifest.positions.end.value()},
                                       {"seconds", seconds}}
                    .dump()
             << '\n';
    return;
  }
  tool.out << fmt::format(
      "{}: backup {} of {} restored: {} in {} files ({:.1f} s)\n"
      "The log ends at {}. A server cuts it there at its first start and exits with code 0: start "
      "it again.\nMake a full backup of this node once it runs.\n",
      arguments.directory, manifest.id, printable(manifest.source.node),
      human_bytes(manifest.stored_bytes()), human_count(manifest.files.size()), seconds,
      manifest.positions.end);
  if (!job.index_choice().empty()) {
    tool.out << fmt::format("The index was {}.\n", job.index_choice());
  }
  if (arguments.keep_old) {
    tool.out << fmt::format(
        "The files that were there lie in old-before-{0}. To put them back (node stopped):\n"
        "  verger-db restore {1} --revert {0}\n"
        "To remove them:\n"
        "  verger-db restore {1} --discard-old {0}\n",
        manifest.id, arguments.directory);
  }
}

backup::RestoredDatabase restored_database(const RestoreArguments& arguments) {
  return {.directory = arguments.directory,
          .index_directory = arguments.index_directory,
          .assume_stopped = arguments.assume_stopped};
}

/// Kept by restores of other backups, for the message that there is nothing of this one.
std::string others_kept(ToolContext& tool, const std::string& directory) {
  const auto found = backup::generations_with_kept_files(tool.files, directory);
  return found && !found->empty() ? fmt::format("; kept are those of {}", fmt::join(*found, ", "))
                                  : std::string();
}

Result<int> revert(ToolContext& tool, const RestoreArguments& arguments) {
  VERGER_TRY(const bool reverted,
             backup::revert_restore(tool.files, restored_database(arguments), arguments.revert));
  if (!reverted) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: a restore of {} kept no files here{}", arguments.directory,
                             arguments.revert, others_kept(tool, arguments.directory))};
  }
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"id", arguments.revert},
                                       {"directory", arguments.directory},
                                       {"reverted", true}}
                    .dump()
             << '\n';
  } else {
    tool.out << fmt::format("{}: is as it was before the restore of {}\n", arguments.directory,
                            arguments.revert);
  }
  return kExitDone;
}

Result<int> discard_old(ToolContext& tool, const RestoreArguments& arguments) {
  VERGER_TRY(const auto bytes, backup::discard_kept_files(tool.files, restored_database(arguments),
                                                          arguments.discard));
  if (bytes == 0) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: a restore of {} kept no files here{}", arguments.directory,
                             arguments.discard, others_kept(tool, arguments.directory))};
  }
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"id", arguments.discard},
                                       {"directory", arguments.directory},
                                       {"bytes", bytes}}
                    .dump()
             << '\n';
  } else {
    tool.out << fmt::format("{}: {} from before the restore of {} removed\n", arguments.directory,
                            human_bytes(bytes), arguments.discard);
  }
  return kExitDone;
}

Result<int> restore(ToolContext& tool, const RestoreArguments& arguments) {
  if (!arguments.discard.empty()) {
    return discard_old(tool, arguments);
  }
  if (!arguments.revert.empty()) {
    return revert(tool, arguments);
  }
  backup::RestoreOptions options;
  options.directory = arguments.directory;
  options.index_directory = arguments.index_directory;
  options.keep_old = arguments.keep_old;
  options.assume_stopped = arguments.assume_stopped;
  options.verify_after = !arguments.no_verify;
  options.lanes = static_cast<std::size_t>(arguments.threads);
  options.index_from = index_source(arguments);
  if (!arguments.among_other_files) {
    VERGER_RETURN_IF_ERROR(refuse_other_directory(tool, options.directory));
  }
  VERGER_RETURN_IF_ERROR(check_owner(tool, options));
  VERGER_TRY(const auto store, open_repository_store(tool, arguments.repository));
  VERGER_TRY(const auto repository,
             backup::Repository::open(*store, backup::Repository::Create::kNo));
  VERGER_TRY(const auto manifest, repository.load(arguments.id, arguments.node));
  const auto runner = scavenge::make_thread_runner(arguments.threads);
  backup::RestoreJob job(tool.files, *store, manifest, options, tool.clock, tool.random, tool.log,
                         *runner);
  const StopSignals signals;
  const auto start = tool.clock.monotonic();
  if (auto driven = drive_restore(tool, job, arguments.rate); !driven) {
    if (driven.error().code == Errc::kCancelled) {
      tool.err << "verger-db: stopped; run the same command again to continue, before the node is "
                  "started\n";
      return kExitStopped;
    }
    return driven.error();
  }
  print_restored(tool, arguments, manifest, job,
                 std::chrono::duration<double>(tool.clock.monotonic() - start).count());
  return kExitDone;
}

}  // namespace

void add_restore_command(CLI::App& program, Action& chosen) {
  auto arguments = std::make_shared<RestoreArguments>();
  auto* command =
      program.add_subcommand("restore", "Put a backup in the place of a stopped node's database");
  command->add_option("DIR", arguments->directory, "Database directory; made when missing")
      ->required();
  command->add_option("--index", arguments->index_directory,
                      "Index directory (default: DIR/index)");
  auto* from = command->add_option("--from", arguments->repository, std::string(kRepositoryText))
                   ->type_name("REPOSITORY");
  const auto is_id = [](const std::string& text) {
    return backup::is_generation_id(text) ? std::string() : "is not the id of a backup: " + text;
  };
  auto* revert_option =
      command
          ->add_option("--revert", arguments->revert,
                       "Put the files back that the restore of this backup with --keep-old kept, "
                       "or that it moved away before it was interrupted")
          ->type_name("ID")
          ->excludes(from)
          ->check(is_id);
  command
      ->add_option("--discard-old", arguments->discard,
                   "Remove the files that the restore of this backup with --keep-old kept; the "
                   "node may run")
      ->type_name("ID")
      ->excludes(from)
      ->excludes(revert_option)
      ->check(is_id);
  command->add_option("--backup", arguments->id, "The backup (default: the latest)")
      ->type_name("ID");
  command->add_option("--node", arguments->node, "The latest one of this node")->type_name("NAME");
  command->add_flag("--keep-old", arguments->keep_old,
                    "Keep the files that are there, in old-before-ID of both directories");
  command->add_flag("--no-verify", arguments->no_verify,
                    "Do not read everything again once it is in place");
  command
      ->add_option("--rebuild-index", arguments->rebuild_index,
                   "Whether the index is made from the restored log instead of copied: auto, where "
                   "that is clearly faster, as measured meanwhile (default); always; never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->add_flag("--assume-stopped", arguments->assume_stopped,
                    "Do not search /proc for a server that has the files open");
  command->add_flag("--among-other-files", arguments->among_other_files,
                    "Restore also into a directory that holds other files and no database");
  command->add_option("--rate", arguments->rate, "At most so many MiB a second (default: no limit)")
      ->check(check_positive<std::uint64_t>);
  command->add_option("--threads", arguments->threads, "Files copied side by side")
      ->check(CLI::Range(1, 16));
  command->footer(std::string(kWhoseFiles) +
                  "An interrupted restore, or revert, is resumed by the same command.\n"
                  "Example:\n  verger-db restore /var/lib/eventstore --from /backup/orders "
                  "--keep-old");
  command->callback([arguments, &chosen] {
    if (arguments->repository.empty() && arguments->revert.empty() && arguments->discard.empty()) {
      throw CLI::RequiredError("--from");
    }
    chosen = [arguments](ToolContext& tool) { return restore(tool, *arguments); };
  });
}

}  // namespace verger::tool
