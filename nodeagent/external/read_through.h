#pragma once

#include "engine/base/memory_file_system.h"

namespace verger::external {

/// One file of a disk that is read where it lies, in a directory whose other files exist in memory
/// only: what SQLite needs to read a large database that it must not touch. Writing to the file is
/// refused; files created beside it are not on the disk.
class ReadThrough final : public FileSystem {
 public:
  ReadThrough(FileSystem& base, Path file);

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<bool> exists(const Path& path) override;
  Result<std::uint64_t> file_size(const Path& path) override;
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override;
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> remove(const Path& path) override;
  Result<void> make_directories(const Path& path) override;
  Result<void> sync_directory(const Path& directory) override;
  Result<void> set_read_only(const Path& path, bool read_only) override;
  Result<DiskSpace> space(const Path& path) override;
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override;

 private:
  FileSystem& base_;
  Path file_;
  MemoryFileSystem beside_;
};

}  // namespace verger::external
