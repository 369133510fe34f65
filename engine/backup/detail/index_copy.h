#pragma once

#include <optional>
#include <set>

#include "engine/backup/detail/copy_queue.h"
#include "engine/backup/source.h"
#include "engine/base/file_system.h"
#include "engine/index/index_map.h"

namespace verger::backup::detail {

/// The index part of a copy, steps 1 to 9 of the contract (docs/operations/backup.md): the map, the
/// files it names, the map again, until both are the same; then the other files. The tables of a
/// map that was replaced meanwhile are dropped. One thread.
class IndexCopy {
 public:
  /// All outlive it.
  IndexCopy(FileSystem& files, const BackupSource& source, BlobStore& store, CopyQueue& queue);

  enum class Outcome : std::uint8_t { kMore, kRest, kDone };
  /// Errors: kUnavailable (the map does not stop changing), kCorruption, those of copying.
  Result<Outcome> step(std::uint64_t most);

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
  void keep_stored();

  FileSystem& disk_;
  Path directory_;
  bool changes_;  ///< a node works on it
  BlobStore& store_;
  CopyQueue& queue_;
  Phase phase_ = Phase::kMap;
  int attempts_ = 0;
  bool has_map_ = false;
  Bytes map_bytes_;
  index::IndexMap map_;
  std::set<std::string> copied_;
  std::vector<BackedUpFile> files_;
};

/// Whole bytes of a file that is open: for a queue.
WantedFile wanted_file(const FileSystem& files, std::shared_ptr<File> file, std::uint64_t size,
                       std::string path, FileKind kind);

}  // namespace verger::backup::detail
