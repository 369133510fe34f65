#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/backup/manifest.h"
#include "engine/backup/restore_job.h"
#include "engine/base/file_system.h"

namespace verger::backup::detail {

/// A file as a restore makes it: from the store, or with content of its own.
struct NewFile {
  BackedUpFile entry;
  std::optional<Bytes> content;  ///< checkpoints that differ from the copied ones
};

/// What a restore has to put in place: the generation's files, with truncate.chk where the log ends
/// and epoch.chk below that.
std::vector<NewFile> new_files_of(const Manifest& manifest);

/// The two directories of a database during a restore. Beside the files of each lies
/// `verger-restore`, with `new` and `old`.
class RestorePlace {
 public:
  RestorePlace(FileSystem& files, Path directory, Path index_directory);

  /// Where a file of a generation belongs; where it waits until then.
  [[nodiscard]] Path target(std::string_view path) const;
  [[nodiscard]] Path staged(std::string_view path) const;

  enum class Phase : std::uint8_t {
    kStaging,    ///< nothing of the old files was touched
    kSwitching,  ///< old files move away, new ones into place
    kFinishing,  ///< all is in place and verified
    kReverting,  ///< new files go, old ones come back
    kReverted,   ///< only the first chunk is missing
  };
  struct Progress {
    std::string generation;
    Phase phase = Phase::kStaging;
    bool keep_old = false;
    /// Paths of the files that are to be moved away, or to come back.
    std::vector<std::string> old;
    /// While reverting: the old files are those that a finished restore kept.
    bool from_kept = false;
    /// The index tables are made from the log, not restored.
    bool index_from_log = false;
  };
  /// nullopt: no restore is unfinished. Errors: kCorruption, kIo.
  Result<std::optional<Progress>> load() const;
  Result<void> save(const Progress& progress) const;
  /// Every file that belongs to a database in the two directories. Error: kIo.
  Result<std::vector<std::string>> database_files() const;

  /// From the old files to the new ones. May be repeated from the start after a crash anywhere.
  Result<void> switch_files(const Progress& progress, const std::vector<NewFile>& files) const;
  /// Old files go, or get their lasting name; the rest of the restore goes.
  Result<void> finish(const Progress& progress) const;
  /// All that an unfinished restore has copied.
  Result<void> discard() const;

  // --- The files that a finished restore kept ---

  /// `old-before-<generation>` of the database directory, which is there while any were kept.
  [[nodiscard]] Path kept(const std::string& generation) const;
  /// Their paths, all of which are there. Errors: kNotFound (none were kept), kCorruption (some are
  /// missing).
  Result<std::vector<std::string>> kept_files(const std::string& generation) const;
  /// From the new files back to the old ones. May be repeated from the start after a crash
  /// anywhere.
  Result<void> put_back(Progress progress) const;
  /// Removes the files that were kept. Their size in bytes.
  Result<std::uint64_t> discard_kept(const std::string& generation) const;

 private:
  struct Area {
    Path directory;
    [[nodiscard]] Path work() const { return directory / "verger-restore"; }
    [[nodiscard]] Path kept(const std::string& generation) const {
      return directory / ("old-before-" + generation);
    }
  };
  [[nodiscard]] const Area& area_of(std::string_view path) const;
  /// The path within its area.
  static std::string_view name_in(std::string_view path);
  [[nodiscard]] Path old(std::string_view path) const;
  [[nodiscard]] Path state_path() const { return database_.work() / "state"; }
  Result<void> move_old(const std::string& path) const;
  Result<void> place(const std::string& path) const;
  /// Writes which files `work()/old` of both directories hold.
  Result<void> list_kept(const Progress& progress) const;
  Result<void> remove_new(const Progress& progress) const;
  Result<void> move_back(const std::string& path) const;

  FileSystem& disk_;
  Area database_;
  Area index_;
};

}  // namespace verger::backup::detail
