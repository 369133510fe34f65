#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/detail/paged_bytes.h"
#include "engine/base/random.h"

namespace verger::detail {

struct MemoryNode;
using NodePtr = std::shared_ptr<MemoryNode>;
using Names = std::map<std::string, NodePtr, std::less<>>;

/// A change of a file's content that no sync has made durable, with what undoes it.
struct PendingWrite {
  enum class Kind : std::uint8_t { kWrite, kResize };
  Kind kind = Kind::kWrite;
  std::uint64_t old_size = 0;
  std::uint64_t offset = 0;  ///< of a write; the new size of a resize
  std::uint64_t length = 0;  ///< of a write
  Bytes overwritten;         ///< by a write
  PagedBytes::Tail tail;     ///< dropped by a resize
  bool dropped = false;      ///< a sync failed on it: no later sync makes it durable
  bool durable = false;      ///< synced, but kept here because an earlier one is dropped
};

/// A file or a directory: what running programs see, and how to get back to what is on the disk.
struct MemoryNode {
  bool is_directory = false;
  bool read_only = false;
  bool locked = false;
  std::uint64_t number = 0;  ///< tells it from others of its file system; 0: none was given yet

  PagedBytes content;
  std::vector<PendingWrite> pending;  ///< oldest first

  Names live;
  Names durable;

  void write(std::uint64_t offset, ByteView bytes);
  void resize(std::uint64_t size);
  void make_durable();
  /// After a failed sync the kernel may take the pages for clean: a later sync skips them.
  void drop_pending();
  /// Back to what is on the disk; with `torn`, some pending changes reach it, whole or in part.
  void lose_pending(Random* torn);
};

/// A change of names that no sync_directory() has made durable: takes a name away, gives one, or
/// does both as one (rename).
struct PendingName {
  NodePtr erase_from;
  std::string erase_name;
  NodePtr insert_into;
  std::string insert_name;
  NodePtr node;

  void apply_to_disk() const;
};

}  // namespace verger::detail
