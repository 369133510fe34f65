#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/backup/blob_store.h"
#include "engine/backup/manifest.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::backup {

/// Where the index tables of a restored database come from.
enum class IndexSource : std::uint8_t {
  kBackup,  ///< they are restored like everything else
  kLog,     ///< they are made from the restored log
  kFaster,  ///< the one of both that takes less time, as measured (RestoreJob::index_choice())
};

struct RestoreOptions {
  Path directory;        ///< made when it is missing
  Path index_directory;  ///< empty: "<directory>/index"
  /// The files that were there stay, in `old-before-<generation>` of both directories
  /// (kept_files.h).
  bool keep_old = false;
  /// Do not search /proc for a server that has the files open.
  bool assume_stopped = false;
  /// Reads everything again once it is in place. Without it only sizes and the log's structure are
  /// looked at.
  bool verify_after = true;
  std::size_t lanes = 1;
  IndexSource index_from = IndexSource::kBackup;

  [[nodiscard]] Path index() const {
    return index_directory.empty() ? directory / "index" : index_directory;
  }
};

struct RestoreProgress {
  std::string_view phase = "check";
  std::uint64_t done = 0;  ///< bytes of the phase
  std::uint64_t total = 0;
};

/// Puts a generation in the place of a stopped node's files (docs/operations/backup.md, "Restore").
///
/// Everything is copied beside them first and compared with its SHA-256; only then are the old
/// files moved away and the new ones put in place, those of chunk 0 first and last, so that no
/// server starts on a mixture. truncate.chk gets the position where the restored log ends: the node
/// cuts it there when it is started. A restore that was interrupted is resumed by a new job with
/// the same generation and directories.
///
/// Index tables that are made from the log are made once everything else is in place and verified.
/// A server that was started before they are complete makes them itself.
///
/// Errors: kRefused (a server has the directory open, the lock, another generation's unfinished
/// restore, an unfinished way back, files that an earlier restore of this generation kept),
/// kNoSpace (of either volume, before anything is copied), kNotFound and kCorruption (the backup;
/// nothing was changed), kIo. One thread.
class RestoreJob final : public Job {
 public:
  /// All but manifest and options outlive it.
  RestoreJob(FileSystem& files, BlobStore& store, Manifest manifest, RestoreOptions options,
             Clock& clock, Random& random, Log& log,
             scavenge::ParallelRunner& runner = scavenge::inline_runner());
  ~RestoreJob() override;
  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] const RestoreProgress& progress() const;
  /// The bytes that an interrupted restore had copied already.
  [[nodiscard]] std::uint64_t resumed_bytes() const;
  /// What the index tables were made from, and why, for people; empty: they are the backup's, and
  /// nothing was to be chosen, or not yet.
  [[nodiscard]] const std::string& index_choice() const;
  [[nodiscard]] bool rebuilds_index() const;
  /// The database is touched from the next step on, or was already: to be carried to its end, or
  /// reverted (kept_files.h).
  [[nodiscard]] bool replaces_files() const;
  /// The new files are in place and verified: what is left is the old ones.
  [[nodiscard]] bool is_in_place() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::backup
