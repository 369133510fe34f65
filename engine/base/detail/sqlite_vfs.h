#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <sqlite3.h>
#include <string>

#include "engine/base/memory_file_system.h"

namespace verger::sqlite::detail {

/// SQLite's door to a FileSystem (https://www.sqlite.org/vfs.html). Version 1 methods only: without
/// shared memory a WAL database can be opened in exclusive locking mode alone, and no -shm file is
/// made. A lock on the main database is the FileSystem's lock on that file, so that other SQLite
/// connections, those of a running server too, keep us out and are kept out.
class Vfs {
 public:
  /// The registered VFS of `files`; registered while the pointer is held. Safe from any thread.
  static std::shared_ptr<Vfs> of(FileSystem& files);

  explicit Vfs(FileSystem& files);
  ~Vfs();
  Vfs(const Vfs&) = delete;
  Vfs& operator=(const Vfs&) = delete;

  [[nodiscard]] const char* name() const { return name_.c_str(); }
  FileSystem& files() { return files_; }
  /// Where files without a name go (spilled sorts); they need not survive anything.
  MemoryFileSystem& scratch() { return scratch_; }
  std::string scratch_name();

 private:
  FileSystem& files_;
  MemoryFileSystem scratch_;
  std::mutex mutex_;
  std::uint64_t scratch_files_ = 0;
  std::string name_;
  sqlite3_vfs vfs_{};
};

/// What the FileSystem said in this thread since the last clear: SQLite's own codes do not tell.
std::optional<Error>& last_disk_error();

}  // namespace verger::sqlite::detail
