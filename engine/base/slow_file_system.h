#pragma once

#include <functional>

#include "engine/base/file_system.h"

namespace verger {

/// A disk whose syncs, of files and of directories, take longer than those of `disk` below it: each
/// calls `before_sync` first, which waits or lets time pass. For tests.
class SlowFileSystem final : public FileSystem {
 public:
  /// `disk` outlives it, and it outlives its files. `before_sync`: from any thread that syncs.
  SlowFileSystem(FileSystem& disk, std::function<void()> before_sync)
      : disk_(disk), before_sync_(std::move(before_sync)) {}

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<bool> exists(const Path& path) override { return disk_.exists(path); }
  Result<std::uint64_t> file_size(const Path& path) override { return disk_.file_size(path); }
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    return disk_.list(directory);
  }
  Result<void> rename(const Path& from, const Path& to) override { return disk_.rename(from, to); }
  Result<void> remove(const Path& path) override { return disk_.remove(path); }
  Result<void> make_directories(const Path& path) override { return disk_.make_directories(path); }
  Result<void> sync_directory(const Path& directory) override;
  Result<void> set_read_only(const Path& path, bool read_only) override {
    return disk_.set_read_only(path, read_only);
  }
  Result<DiskSpace> space(const Path& path) override { return disk_.space(path); }
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override { return disk_.lock(path); }

 private:
  class SlowFile;
  FileSystem& disk_;
  std::function<void()> before_sync_;
};

}  // namespace verger
