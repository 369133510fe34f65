#pragma once

#include <mutex>
#include <set>

#include "engine/base/file_system.h"

namespace verger::online_scavenge::detail {

/// A shadow's directory while it is worked in: what is linked there is a server's file, too, and is
/// neither written nor given other permissions. Taking its name in the shadow away is harmless.
/// Safe from any thread.
class ShadowFiles final : public FileSystem {
 public:
  /// `linked`: paths.
  ShadowFiles(FileSystem& base, std::set<Path> linked) : base_(base), linked_(std::move(linked)) {}

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<bool> exists(const Path& path) override { return base_.exists(path); }
  Result<std::uint64_t> file_size(const Path& path) override { return base_.file_size(path); }
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    return base_.list(directory);
  }
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> remove(const Path& path) override;
  Result<void> make_directories(const Path& path) override { return base_.make_directories(path); }
  Result<void> sync_directory(const Path& directory) override {
    return base_.sync_directory(directory);
  }
  Result<void> set_read_only(const Path& path, bool read_only) override;
  Result<DiskSpace> space(const Path& path) override { return base_.space(path); }
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override { return base_.lock(path); }

 private:
  [[nodiscard]] Result<void> check(const Path& path) const;

  FileSystem& base_;
  mutable std::mutex mutex_;
  std::set<Path> linked_;
};

}  // namespace verger::online_scavenge::detail
