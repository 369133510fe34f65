#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
  /// Writes a new file that only this process's user can read from its first byte on, then gives it
  /// the attributes, where there are any, and makes its content durable; its name is durable once
  /// the directory is synced. Safe in a directory that others may write, too: no link is followed.
  /// A crash may leave a part of it; after an error nothing is left. Errors: kExists; kRefused:
  /// this process may not give it to that user, or not write there; kNoSpace; kIo.
  virtual Result<void> write_new(FileSystem& files, const Path& path, std::string_view content,
                                 const std::optional<FileAttributes>& attributes);
  /// Why files cannot be made and replaced in a directory; empty: they can.
  virtual std::string not_writable(const Path& /*directory*/) { return {}; }
};

FileAccess& posix_file_access();

}  // namespace verger::external
