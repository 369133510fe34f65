#pragma once

#include <memory>
#include <optional>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "nodeagent/external/server_process.h"

namespace verger::agent {

/// The scratch directory while a drill uses it. Each drill works in a directory of its own there,
/// "drill-GENERATION", which holds the restored database in "db".
class DrillPlace {
 public:
  /// Removes what drills that were killed left behind: their processes, then their directories,
  /// which are known by a file of ours. Nothing else in `scratch` is touched. Errors: kRefused
  /// (another drill uses it), kNotFound (there is no such directory), kIo.
  static Result<std::unique_ptr<DrillPlace>> open(FileSystem& files, const Path& scratch,
                                                  std::string_view generation);

  [[nodiscard]] Path directory() const { return directory_; }
  [[nodiscard]] Path database() const { return directory_ / "db"; }
  /// Whether `bytes` fit, and something is left for the node and for others on that disk. Error:
  /// kNoSpace.
  Result<void> check_space(std::uint64_t bytes) const;
  /// Of the process that is about to work there, so that the next drill can kill it.
  Result<void> note_process(const external::ServerProcess& process);
  /// What the drill made goes.
  Result<void> remove();

 private:
  DrillPlace(FileSystem& files, Path directory, std::unique_ptr<FileLock> lock)
      : files_(files), directory_(std::move(directory)), lock_(std::move(lock)) {}
  static Result<void> remove_leftover(FileSystem& files, const Path& directory);

  FileSystem& files_;
  Path directory_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace verger::agent
