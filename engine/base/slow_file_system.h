#pragma once

#include <functional>

#include "engine/base/forwarding_file_system.h"

namespace verger {

/// A disk whose syncs, of files and of directories, take longer than those of `disk` below it: each
/// calls `before_sync` first, which waits or lets time pass. For tests.
class SlowFileSystem final : public ForwardingFileSystem {
 public:
  /// `disk` outlives it, and it outlives its files. `before_sync`: from any thread that syncs.
  SlowFileSystem(FileSystem& disk, std::function<void()> before_sync)
      : ForwardingFileSystem(disk), before_sync_(std::move(before_sync)) {}

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<void> sync_directory(const Path& directory) override;

 private:
  class SlowFile;
  std::function<void()> before_sync_;
};

}  // namespace verger
