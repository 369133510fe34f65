#pragma once

#include <cstdint>
#include <string>

#include "engine/base/file_system.h"

namespace verger::external {

struct FileAttributes {
  std::uint32_t mode = 0600;  ///< permission bits
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  friend bool operator==(const FileAttributes&, const FileAttributes&) = default;
};

/// What a file system has beyond FileSystem: links, owners, modes. This one has none of them, as
/// one in memory; posix_file_access() is the machine's. Safe from any thread.
class FileAccess {
 public:
  virtual ~FileAccess() = default;
  /// Where a path leads to when all links in it are followed. Errors: kNotFound, kIo.
  virtual Result<Path> target_of(const Path& path) { return path; }
  /// Errors: kNotFound, kIo.
  virtual Result<FileAttributes> attributes_of(const Path& /*path*/) { return FileAttributes{}; }
  /// Owner and mode of a file of ours. Errors: kRefused: this process may not give it to that user;
  /// kNotFound; kIo.
  virtual Result<void> set_attributes(const Path& /*path*/, const FileAttributes& /*to*/) {
    return {};
  }
  /// Makes an empty file that only this process's user can read, in `files`. Errors: kExists,
  /// kNoSpace, kIo.
  virtual Result<void> create_private(FileSystem& files, const Path& path);
  /// Why files cannot be made and replaced in a directory; empty: they can.
  virtual std::string not_writable(const Path& /*directory*/) { return {}; }
};

FileAccess& posix_file_access();

}  // namespace verger::external
