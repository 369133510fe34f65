#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/result.h"

namespace verger {

using Path = std::filesystem::path;

enum class OpenMode : std::uint8_t {
  kRead,       ///< the file must exist
  kReadWrite,  ///< the file must exist
  kCreate,     ///< read and write; created when missing, content kept
  kCreateNew,  ///< read and write; kExists when it is already there
};

/// One open file. Positional reads are safe from any thread, also beside one writer.
/// A failed sync is final: the file refuses every later write and sync.
class File {
 public:
  virtual ~File() = default;
  /// The path it was opened with, for messages; it may have been renamed since.
  virtual const Path& path() const = 0;
  /// Reads up to `into.size()` bytes; fewer only at the end of the file. Errors: kIo.
  virtual Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const = 0;
  /// Extends the file where needed. Errors: kIo, kNoSpace.
  virtual Result<void> write_at(std::uint64_t offset, ByteView bytes) = 0;
  virtual Result<std::uint64_t> size() const = 0;
  /// Cuts, or extends with zeros (without claiming disk blocks).
  virtual Result<void> resize(std::uint64_t size) = 0;
  /// The bytes written so far are on the disk when this returns.
  virtual Result<void> sync() = 0;

  /// Reads exactly `into.size()` bytes; kCorruption when the file ends before.
  Result<void> read_exact(std::uint64_t offset, MutableBytes into) const;
};

/// An exclusive advisory lock on a file, held while the object lives.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  std::uint64_t size = 0;
};

struct DiskSpace {
  std::uint64_t total = 0;
  std::uint64_t available = 0;
};

/// The only way the engine reaches a disk, so that tests can fail operations and lose what was not
/// synced. Safe from any thread. Every error message names the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Errors: kNotFound, kExists, kIo, kNoSpace.
  virtual Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) = 0;
  virtual Result<bool> exists(const Path& path) = 0;
  virtual Result<std::uint64_t> file_size(const Path& path) = 0;
  /// Entries of one directory without sockets, sorted by name. Errors: kNotFound, kIo.
  virtual Result<std::vector<DirectoryEntry>> list(const Path& directory) = 0;
  /// Replaces `to` atomically. Durable only after sync_directory of the parent.
  virtual Result<void> rename(const Path& from, const Path& to) = 0;
  /// A file, or an empty directory. Errors: kNotFound, kIo.
  virtual Result<void> remove(const Path& path) = 0;
  /// With all parents; nothing happens when it is there.
  virtual Result<void> make_directories(const Path& path) = 0;
  /// Creations, renames and removals in `directory` are on the disk when this returns.
  virtual Result<void> sync_directory(const Path& directory) = 0;
  /// Sets or clears the write permission bits (completed chunks and PTables are read-only).
  virtual Result<void> set_read_only(const Path& path, bool read_only) = 0;
  /// Tells a file from every other one that had or will have its name; writing into it or renaming
  /// it does not change this. Empty: this file system cannot tell. Snapshots of a volume keep it.
  /// Errors: kNotFound, kIo.
  virtual Result<std::string> file_identity(const Path& /*path*/) { return std::string(); }
  /// Whether every user of the machine may read it; a file system without users has none of those.
  virtual Result<bool> readable_by_anybody(const Path& /*path*/) { return false; }
  virtual Result<DiskSpace> space(const Path& path) = 0;
  /// Creates the file when missing. kRefused when another open file description holds the lock.
  virtual Result<std::unique_ptr<FileLock>> lock(const Path& path) = 0;
};

/// The machine's disk.
FileSystem& posix_file_system();

/// Writes `path`.tmp, syncs it, renames it over `path`, syncs the directory. After an error the old
/// content is still there (or, when only the last sync failed, one of the two).
Result<void> write_file_durably(FileSystem& files, const Path& path, ByteView content);
/// What to say of a file with a password or key that every user of the machine may read; empty: it
/// is not one.
std::string exposed_secret(FileSystem& files, const Path& path);
/// The whole file; kUnsupported when it is larger than `limit` bytes.
Result<Bytes> read_file(FileSystem& files, const Path& path, std::uint64_t limit = 64U << 20U);

}  // namespace verger
