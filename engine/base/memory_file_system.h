#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/file_links.h"
#include "engine/base/file_system.h"

namespace verger {

/// One operation that reaches the disk, as a fault hook sees it.
struct DiskOperation {
  std::uint64_t number = 0;  ///< counts mutating operations from 0 since the start or last reset
  /// "create", "write", "resize", "sync", "rename", "link", "remove", "make_directory",
  /// "sync_directory" or "set_read_only".
  std::string_view kind;
  Path path;
};

/// A disk in memory that knows what a power cut would leave: content is durable after sync() of the
/// file; names after sync_directory() of their directory. Not synced writes, resizes, creations,
/// renames and removals are lost (or, with a torn-write seed, lost in part) by cut_power(). What a
/// failed sync was to save is not saved by a later one. Permissions are durable at once; a file
/// without write permission cannot be opened for writing. Relative paths count from "/".
/// A write copies only its own bytes and what it overwrites; clones share pages until one of them
/// writes. Safe from any thread.
class MemoryFileSystem final : public FileSystem, public FileLinks {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<bool> exists(const Path& path) override;
  Result<std::uint64_t> file_size(const Path& path) override;
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override;
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> link(const Path& from, const Path& to) override;
  Result<void> remove(const Path& path) override;
  Result<void> make_directories(const Path& path) override;
  Result<void> sync_directory(const Path& directory) override;
  Result<void> set_read_only(const Path& path, bool read_only) override;
  Result<std::string> file_identity(const Path& path) override;
  Result<DiskSpace> space(const Path& path) override;
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override;

  /// Called before each mutating operation; an error fails it, nothing is changed. It may call this
  /// file system, for example cut_power(): then the operation fails, too.
  using FaultHook = std::function<std::optional<Error>(const DiskOperation&)>;
  void set_fault_hook(FaultHook hook);
  /// Mutating operations since construction or reset_count().
  std::uint64_t operation_count() const;
  void reset_count();

  /// The power goes: every open File and FileLock fails from now on with kIo, and only what was
  /// durable remains. With a seed, each not synced write of a file may survive, be lost, or be torn
  /// at a 512-byte boundary, independently; directory operations survive as a prefix in order.
  void cut_power(std::optional<std::uint64_t> torn_seed = std::nullopt);
  /// As cut_power, but everything written survives: only the process died.
  void kill_process();
  /// Bytes that may still be written before kNoSpace, not counting those that go over bytes already
  /// there; removing gives none back. nullopt = no limit.
  void set_free_space(std::optional<std::uint64_t> bytes);
  /// Writes that found no space, since construction.
  std::uint64_t no_space_count() const;

  /// Copies the content of the directory `source` of another file system into `target`, which is
  /// made with its parents; durable at once, not counted as operations. Permissions are not copied.
  Result<void> import_tree(FileSystem& from, const Path& source, const Path& target);
  /// An independent copy of the current content, all of it durable, without open files.
  std::unique_ptr<MemoryFileSystem> clone() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace verger
