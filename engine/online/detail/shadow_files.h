#pragma once

#include <mutex>
#include <set>

#include "engine/base/forwarding_file_system.h"

namespace verger::online_scavenge::detail {

/// A shadow's directory while it is worked in: what is linked there is a server's file, too, and is
/// neither written nor given other permissions. Taking its name in the shadow away is harmless.
/// Safe from any thread.
class ShadowFiles final : public ForwardingFileSystem {
 public:
  /// `linked`: paths.
  ShadowFiles(FileSystem& base, std::set<Path> linked)
      : ForwardingFileSystem(base), linked_(std::move(linked)) {}

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> remove(const Path& path) override;
  Result<void> set_read_only(const Path& path, bool read_only) override;

 private:
  [[nodiscard]] Result<void> check(const Path& path) const;

  mutable std::mutex mutex_;
  std::set<Path> linked_;
};

}  // namespace verger::online_scavenge::detail
