#include "engine/log/detail/log_opening.h"

#include <optional>

#include "engine/base/database_files.h"
#include "engine/log/detail/server_search.h"
#include "engine/log/detail/truncation.h"

namespace verger::log::detail {
namespace {

/// How often an opening beside a writer starts over before it fails.
constexpr int kAttempts = 20;

/// Chunks may be switched and writer.chk may move between the looks at both: an inconsistency
/// counts only when nothing has changed in between.
Result<OpenedLog> open_beside_a_writer(FileSystem& files, const Path& directory,
                                       const LogOptions& options) {
  for (int attempt = 1;; ++attempt) {
    VERGER_TRY(auto snapshot, take_snapshot(files, directory, false));
    auto judgement = judge(files, directory, snapshot, options);
    if (judgement) {
      return OpenedLog{std::move(snapshot), *std::move(judgement), nullptr, false};
    }
    VERGER_TRY(const auto now, take_snapshot(files, directory, false));
    if (now == snapshot || attempt == kAttempts) {
      return std::move(judgement).error();
    }
  }
}

/// A directory is there for good once the one above it was synced; so is that one.
Result<void> make_durable_directory(FileSystem& files, const Path& directory) {
  std::vector<Path> parents;
  for (Path at = directory; !at.empty(); at = at.parent_path()) {
    VERGER_TRY(const bool exists, files.exists(at));
    if (exists) {
      break;
    }
    parents.push_back(at.has_parent_path() ? at.parent_path() : Path("."));
  }
  VERGER_RETURN_IF_ERROR(files.make_directories(directory));
  for (const Path& parent : parents) {
    VERGER_RETURN_IF_ERROR(files.sync_directory(parent));
  }
  return {};
}

/// All is judged before the lock file, the first change, is made; and again if another process
/// changed the directory before this one held the lock.
Result<OpenedLog> open_alone(FileSystem& files, const Path& directory, const LogOptions& options) {
  if (options.create) {
    VERGER_RETURN_IF_ERROR(make_durable_directory(files, directory));
  }
  std::unique_ptr<FileLock> lock;
  for (;;) {
    VERGER_TRY(auto snapshot, take_snapshot(files, directory, options.create));
    if (!options.assume_stopped && is_machine_disk(files)) {
      VERGER_RETURN_IF_ERROR(refuse_running_server(directory));
    }
    const LogPosition cut(snapshot.checkpoints.value(Checkpoint::kTruncate));
    std::optional<TruncationPlan> plan;
    std::optional<Judgement> judgement;
    if (cut != kNoPosition) {
      VERGER_TRY(plan, plan_truncation(files, directory, snapshot, options, cut));
    } else {
      VERGER_TRY(judgement, judge(files, directory, snapshot, options));
    }
    if (!lock) {
      VERGER_TRY(lock, files.lock(directory / "verger.lock"));
      VERGER_TRY(const auto now, take_snapshot(files, directory, options.create));
      if (now != snapshot) {
        continue;
      }
    }
    if (plan) {
      VERGER_RETURN_IF_ERROR(carry_out(files, directory, snapshot.checkpoints, *plan));
      VERGER_TRY(snapshot, take_snapshot(files, directory, true));
      VERGER_TRY(judgement, judge(files, directory, snapshot, options));
    }
    return OpenedLog{std::move(snapshot), *std::move(judgement), std::move(lock), plan.has_value()};
  }
}

}  // namespace

Result<OpenedLog> open_directory(FileSystem& files, const Path& directory,
                                 const LogOptions& options) {
  return options.access == Access::kReadOnly ? open_beside_a_writer(files, directory, options)
                                             : open_alone(files, directory, options);
}

}  // namespace verger::log::detail
