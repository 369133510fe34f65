#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/detail/memory_node.h"
#include "engine/base/file_system.h"

namespace verger::detail {

Error path_error(Errc code, const Path& path, std::string_view what);

NodePtr make_directory_node();

/// The names of a disk in memory, as programs see them and as they are durable. Not thread-safe.
class MemoryTree {
 public:
  /// A path and what is there.
  struct Place {
    NodePtr directory;
    std::string name;
    NodePtr node;  ///< null when there is nothing of this name
  };

  /// Null when nothing is there. A relative path counts from the root; ".." is not understood.
  NodePtr find(const Path& path) const;
  /// Where `path` is or would be. Error: kNotFound when its directory is missing.
  Result<Place> place(const Path& path) const;
  /// The place of something that is there. Error: kNotFound.
  Result<Place> existing(const Path& path) const;

  /// Visible at once, durable when settled.
  void change(PendingName change);
  /// Makes the changes in `directory` durable, and those elsewhere that an atomic rename ties to
  /// them.
  void settle(const NodePtr& directory);

  /// Back to what is durable; with `torn`, a prefix of the pending changes of names reaches the
  /// disk, and parts of the pending writes.
  void lose_pending(Random* torn);
  void release_locks();
  /// What is visible, all of it durable. Pages are shared until one side writes.
  MemoryTree durable_copy() const;
  /// Puts the content of the directory `tree` below `target`, durable at once.
  Result<void> merge_durably(const Path& target, const MemoryNode& tree);

 private:
  NodePtr root_ = make_directory_node();
  std::vector<PendingName> pending_;  ///< oldest first
};

bool contains(const MemoryNode& tree, const MemoryNode* wanted);

/// Reads a directory of another file system with everything below it; pages of zeros become holes.
Result<NodePtr> import_directory(FileSystem& from, const Path& path);

inline constexpr std::uint64_t kMemoryFileSizeMax = 1ULL << 36U;

}  // namespace verger::detail
