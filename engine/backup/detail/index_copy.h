#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/backup/detail/copy_queue.h"
#include "engine/backup/detail/page_cache.h"
#include "engine/backup/source.h"
#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/index/index_map.h"

namespace verger::backup::detail {

/// The index part of a copy, steps 1 to 9 of the contract (docs/operations/backup.md): the map, the
/// files it names, the map again, until both are the same; then the other files. The tables of a
/// map that was replaced meanwhile are dropped. One thread.
class IndexCopy {
 public:
  /// What tells the log as it is now from any other one; empty: nothing does.
  using LogIdentity = std::function<std::string()>;
  /// All but `log_identity` outlive it.
  IndexCopy(FileSystem& files, const BackupSource& source, BlobStore& store, CopyQueue& queue,
            LogIdentity log_identity);

  /// An earlier generation, whose existence filter may stand for the present one, where
  /// `is_of_this_log`: its records are those of this log. Outlives this.
  void offer(const Manifest& earlier, std::function<Result<bool>()> is_of_this_log);

  enum class Outcome : std::uint8_t { kMore, kRest, kDone };
  /// Errors: kUnavailable (the map does not stop changing), kCorruption, those of copying.
  Result<Outcome> step(std::uint64_t most);

  /// After the copy, repeated until it returns true: whether the scavenge state is still what was
  /// copied. A scavenge of a server leaves a chunk as it is where nothing is to be removed, but
  /// always writes here. Errors: kConflict.
  Result<bool> compare_scavenge_state(std::uint64_t most);

  /// Once it is done.
  [[nodiscard]] const std::vector<BackedUpFile>& files() const { return files_; }
  [[nodiscard]] const index::IndexMap& map() const { return map_; }
  [[nodiscard]] bool has_map() const { return has_map_; }

 private:
  enum class Phase : std::uint8_t { kMap, kTables, kCompare, kRest, kDone };

  Result<Outcome> read_map();
  Result<Outcome> compare_map();
  /// false: a file that the map named is no longer there.
  Result<bool> want_tables();
  Result<bool> want(const std::string& name, FileKind kind, const std::string& identity);
  Result<void> want_rest();
  /// Which files the existence filter and its checkpoint are (FileSystem::file_identity), not what
  /// is in them; empty: one is missing, or the file system cannot tell. Errors: kIo.
  Result<std::string> identity_of_filter_files();
  /// Of the filter in these files at this checkpoint; empty: it is not known whose log it speaks
  /// of.
  [[nodiscard]] std::string filter_identity(const Bytes& checkpoint, std::string_view files) const;
  /// Whether the earlier generation's filter, with its checkpoint, is taken for the one in these
  /// files whose checkpoint this is.
  Result<bool> keep_earlier_filter(const Bytes& checkpoint, std::string_view files);
  void keep_stored();

  FileSystem& disk_;
  Path directory_;
  bool changes_;  ///< a node works on it
  LogIdentity log_identity_;
  const Manifest* earlier_ = nullptr;
  std::function<Result<bool>()> earlier_is_of_this_log_;
  BlobStore& store_;
  CopyQueue& queue_;
  Phase phase_ = Phase::kMap;
  int attempts_ = 0;
  bool has_map_ = false;
  Bytes map_bytes_;
  index::IndexMap map_;
  std::set<std::string> copied_;
  std::vector<BackedUpFile> files_;
  std::unique_ptr<File> state_;  ///< that is being compared
  ReadOnce state_cache_;
  std::uint64_t state_at_ = 0;
  Sha256 state_hash_;
};

/// Whole bytes of a file that is open: for a queue.
WantedFile wanted_file(const FileSystem& files, std::shared_ptr<File> file, std::uint64_t size,
                       std::string path, FileKind kind);

}  // namespace verger::backup::detail
