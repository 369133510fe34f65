#include "engine/base/memory_file_system.h"

#include <algorithm>
#include <fmt/format.h>
#include <mutex>

#include "engine/base/detail/memory_tree.h"

namespace verger {

using detail::kMemoryFileSizeMax;
using detail::make_directory_node;
using detail::MemoryNode;
using detail::NodePtr;
using detail::path_error;

namespace {
constexpr std::uint64_t kDiskSize = 1ULL << 40U;
}

struct MemoryFileSystem::State {
  mutable std::mutex mutex;
  detail::MemoryTree tree;
  std::uint64_t numbered = 0;    ///< files that were asked for their identity
  std::uint64_t generation = 0;  ///< of open files and locks: grows at cut and kill
  std::uint64_t operations = 0;
  std::shared_ptr<const FaultHook> hook;
  std::optional<std::uint64_t> free_space;
  std::uint64_t claimed = 0;
  std::uint64_t no_space = 0;

  using Lock = std::unique_lock<std::mutex>;
  class OpenFile;
  class HeldLock;

  /// Counts a mutating operation and calls the hook, without holding the lock then: it may call
  /// the file system. Afterwards everything looked up before may have changed.
  Result<void> allow(Lock& lock, std::string_view kind, const Path& path) {
    const std::uint64_t number = operations++;
    if (!hook) {
      return {};
    }
    const auto asked = hook;
    const std::uint64_t before = generation;
    lock.unlock();
    auto error = (*asked)(DiskOperation{number, kind, path});
    lock.lock();
    if (error.has_value()) {
      return std::move(error).value();
    }
    if (generation != before) {
      return path_error(Errc::kIo, path,
                        fmt::format("the power or the process went during \"{}\"", kind));
    }
    return {};
  }

  /// With `only_new`, kExists when there is something already.
  Result<NodePtr> find_or_create(Lock& lock, const Path& path, bool only_new) {
    VERGER_TRY(auto found, tree.place(path));
    if (!found.node) {
      VERGER_RETURN_IF_ERROR(allow(lock, "create", path));
      VERGER_TRY(found, tree.place(path));
    }
    if (found.node) {
      if (only_new) {
        return path_error(Errc::kExists, path, "cannot create: File exists");
      }
      return std::move(found.node);
    }
    auto node = std::make_shared<MemoryNode>();
    tree.change({nullptr, {}, std::move(found.directory), std::move(found.name), node});
    return node;
  }
};

class MemoryFileSystem::State::OpenFile final : public File {
 public:
  OpenFile(std::shared_ptr<State> state, NodePtr node, Path path, bool writable)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        writable_(writable),
        generation_(state_->generation) {}

  const Path& path() const override { return path_; }

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    const Lock lock(state_->mutex);
    VERGER_RETURN_IF_ERROR(check_alive());
    return node_->content.read(offset, into);
  }

  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    Lock lock(state_->mutex);
    VERGER_RETURN_IF_ERROR(check_writable());
    VERGER_RETURN_IF_ERROR(check_size(offset));
    VERGER_RETURN_IF_ERROR(check_size(offset + bytes.size()));
    VERGER_RETURN_IF_ERROR(state_->allow(lock, "write", path_));
    const std::uint64_t claim = node_->content.claimed_by(offset, bytes.size());
    if (auto& left = state_->free_space; left.has_value()) {
      if (claim > *left) {
        ++state_->no_space;
        return path_error(
            Errc::kNoSpace, path_,
            fmt::format("cannot write at offset {}: No space left on device", offset));
      }
      *left -= claim;
    }
    state_->claimed += claim;
    node_->write(offset, bytes);
    return {};
  }

  Result<std::uint64_t> size() const override {
    const Lock lock(state_->mutex);
    VERGER_RETURN_IF_ERROR(check_alive());
    return node_->content.size();
  }

  Result<void> resize(std::uint64_t size) override {
    Lock lock(state_->mutex);
    VERGER_RETURN_IF_ERROR(check_writable());
    VERGER_RETURN_IF_ERROR(check_size(size));
    VERGER_RETURN_IF_ERROR(state_->allow(lock, "resize", path_));
    node_->resize(size);
    return {};
  }

  Result<void> sync() override {
    Lock lock(state_->mutex);
    VERGER_RETURN_IF_ERROR(check_writable());
    if (auto allowed = state_->allow(lock, "sync", path_); !allowed) {
      sync_failed_ = true;
      if (check_alive()) {  // the hook may have cut the power
        node_->drop_pending();
      }
      return allowed;
    }
    node_->make_durable();
    return {};
  }

 private:
  Result<void> check_alive() const {
    if (generation_ != state_->generation) {
      return path_error(Errc::kIo, path_, "was opened before the power or the process went");
    }
    return {};
  }
  Result<void> check_writable() const {
    VERGER_RETURN_IF_ERROR(check_alive());
    if (sync_failed_) {
      return path_error(Errc::kIo, path_, "closed for writing: an earlier sync failed");
    }
    if (!writable_) {
      return path_error(Errc::kIo, path_, "was opened for reading only");
    }
    return {};
  }
  Result<void> check_size(std::uint64_t size) const {
    if (size > kMemoryFileSizeMax) {
      return path_error(Errc::kIo, path_, fmt::format("no file may have {} bytes", size));
    }
    return {};
  }

  std::shared_ptr<State> state_;
  NodePtr node_;
  Path path_;
  bool writable_;
  bool sync_failed_ = false;
  std::uint64_t generation_;
};

class MemoryFileSystem::State::HeldLock final : public FileLock {
 public:
  HeldLock(std::shared_ptr<State> state, NodePtr node)
      : state_(std::move(state)), node_(std::move(node)), generation_(state_->generation) {}
  ~HeldLock() override {
    const Lock lock(state_->mutex);
    if (generation_ == state_->generation) {
      node_->locked = false;
    }
  }

 private:
  std::shared_ptr<State> state_;
  NodePtr node_;
  std::uint64_t generation_;
};

MemoryFileSystem::MemoryFileSystem() : state_(std::make_shared<State>()) {}
MemoryFileSystem::~MemoryFileSystem() = default;

Result<std::unique_ptr<File>> MemoryFileSystem::open(const Path& path, OpenMode mode) {
  State::Lock lock(state_->mutex);
  NodePtr node;
  if (mode == OpenMode::kRead || mode == OpenMode::kReadWrite) {
    node = state_->tree.find(path);
    if (!node) {
      return path_error(Errc::kNotFound, path, "cannot open: No such file or directory");
    }
  } else {
    VERGER_TRY(node, state_->find_or_create(lock, path, mode == OpenMode::kCreateNew));
  }
  if (node->is_directory) {
    return path_error(Errc::kIo, path, "cannot open: Is a directory");
  }
  const bool writable = mode != OpenMode::kRead;
  if (writable && node->read_only) {
    return path_error(Errc::kIo, path, "cannot open: Permission denied (the file is read-only)");
  }
  return std::make_unique<State::OpenFile>(state_, std::move(node), path, writable);
}

Result<bool> MemoryFileSystem::exists(const Path& path) {
  const State::Lock lock(state_->mutex);
  return state_->tree.find(path) != nullptr;
}

Result<std::uint64_t> MemoryFileSystem::file_size(const Path& path) {
  const State::Lock lock(state_->mutex);
  const auto node = state_->tree.find(path);
  if (!node) {
    return path_error(Errc::kNotFound, path, "cannot tell its size: No such file or directory");
  }
  return node->content.size();
}

Result<std::string> MemoryFileSystem::file_identity(const Path& path) {
  const State::Lock lock(state_->mutex);
  const auto node = state_->tree.find(path);
  if (!node) {
    return path_error(Errc::kNotFound, path, "cannot look it up: No such file or directory");
  }
  if (node->number == 0) {
    node->number = ++state_->numbered;
  }
  return fmt::format("{}", node->number);
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::list(const Path& directory) {
  const State::Lock lock(state_->mutex);
  const auto node = state_->tree.find(directory);
  if (!node || !node->is_directory) {
    return path_error(Errc::kNotFound, directory, "cannot list: No such directory");
  }
  std::vector<DirectoryEntry> entries;
  entries.reserve(node->live.size());
  for (const auto& [name, child] : node->live) {
    entries.push_back({name, child->is_directory, child->content.size()});
  }
  return entries;
}

Result<void> MemoryFileSystem::rename(const Path& from, const Path& to) {
  State::Lock lock(state_->mutex);
  VERGER_RETURN_IF_ERROR(state_->tree.existing(from));
  VERGER_RETURN_IF_ERROR(state_->allow(lock, "rename", from));
  VERGER_TRY(auto source, state_->tree.existing(from));
  VERGER_TRY(auto target, state_->tree.place(to));
  if (target.node == source.node) {
    return {};
  }
  if (target.node && (target.node->is_directory || source.node->is_directory)) {
    return path_error(Errc::kIo, from,
                      fmt::format("cannot rename to {}: a directory is in the way", to.string()));
  }
  if (detail::contains(*source.node, target.directory.get())) {
    return path_error(Errc::kIo, from, fmt::format("cannot rename to {} inside it", to.string()));
  }
  state_->tree.change({std::move(source.directory), std::move(source.name),
                       std::move(target.directory), std::move(target.name),
                       std::move(source.node)});
  return {};
}

Result<void> MemoryFileSystem::link(const Path& from, const Path& to) {
  State::Lock lock(state_->mutex);
  VERGER_RETURN_IF_ERROR(state_->tree.existing(from));
  VERGER_RETURN_IF_ERROR(state_->allow(lock, "link", to));
  VERGER_TRY(auto source, state_->tree.existing(from));
  VERGER_TRY(auto target, state_->tree.place(to));
  if (target.node) {
    return path_error(Errc::kExists, to, "cannot link: File exists");
  }
  if (source.node->is_directory) {
    return path_error(Errc::kIo, from, "cannot link: a directory");
  }
  state_->tree.change(
      {nullptr, {}, std::move(target.directory), std::move(target.name), std::move(source.node)});
  return {};
}

Result<void> MemoryFileSystem::remove(const Path& path) {
  State::Lock lock(state_->mutex);
  VERGER_RETURN_IF_ERROR(state_->tree.existing(path));
  VERGER_RETURN_IF_ERROR(state_->allow(lock, "remove", path));
  VERGER_TRY(auto place, state_->tree.existing(path));
  if (!place.node->live.empty()) {
    return path_error(Errc::kIo, path, "cannot remove: Directory not empty");
  }
  state_->tree.change({std::move(place.directory), std::move(place.name), nullptr, {}, nullptr});
  return {};
}

Result<void> MemoryFileSystem::make_directories(const Path& path) {
  State::Lock lock(state_->mutex);
  if (const auto node = state_->tree.find(path)) {
    return node->is_directory
               ? Result<void>()
               : path_error(Errc::kExists, path, "cannot make the directory: a file is there");
  }
  Path so_far;
  for (const auto& part : path) {
    so_far /= part;
    if (state_->tree.find(so_far)) {
      continue;
    }
    VERGER_RETURN_IF_ERROR(state_->allow(lock, "make_directory", so_far));
    VERGER_TRY(auto place, state_->tree.place(so_far));
    state_->tree.change(
        {nullptr, {}, std::move(place.directory), std::move(place.name), make_directory_node()});
  }
  return {};
}

Result<void> MemoryFileSystem::sync_directory(const Path& directory) {
  State::Lock lock(state_->mutex);
  VERGER_RETURN_IF_ERROR(state_->allow(lock, "sync_directory", directory));
  const auto node = state_->tree.find(directory);
  if (!node || !node->is_directory) {
    return path_error(Errc::kNotFound, directory, "cannot sync: No such directory");
  }
  state_->tree.settle(node);
  return {};
}

Result<void> MemoryFileSystem::set_read_only(const Path& path, bool read_only) {
  State::Lock lock(state_->mutex);
  VERGER_RETURN_IF_ERROR(state_->tree.existing(path));
  VERGER_RETURN_IF_ERROR(state_->allow(lock, "set_read_only", path));
  VERGER_TRY(const auto place, state_->tree.existing(path));
  place.node->read_only = read_only;
  return {};
}

Result<DiskSpace> MemoryFileSystem::space(const Path& path) {
  const State::Lock lock(state_->mutex);
  if (!state_->tree.find(path)) {
    return path_error(Errc::kNotFound, path,
                      "cannot tell the disk space: No such file or directory");
  }
  const std::uint64_t left = kDiskSize - std::min(kDiskSize, state_->claimed);
  return DiskSpace{kDiskSize, state_->free_space.value_or(left)};
}

Result<std::unique_ptr<FileLock>> MemoryFileSystem::lock(const Path& path) {
  State::Lock lock(state_->mutex);
  VERGER_TRY(auto node, state_->find_or_create(lock, path, false));
  if (node->is_directory) {
    return path_error(Errc::kIo, path, "cannot lock: Is a directory");
  }
  if (node->locked) {
    return path_error(Errc::kRefused, path, "another program holds this lock; stop it first");
  }
  node->locked = true;
  return std::make_unique<State::HeldLock>(state_, std::move(node));
}

void MemoryFileSystem::set_fault_hook(FaultHook hook) {
  const State::Lock lock(state_->mutex);
  state_->hook = hook ? std::make_shared<const FaultHook>(std::move(hook)) : nullptr;
}

std::uint64_t MemoryFileSystem::operation_count() const {
  const State::Lock lock(state_->mutex);
  return state_->operations;
}

void MemoryFileSystem::reset_count() {
  const State::Lock lock(state_->mutex);
  state_->operations = 0;
}

void MemoryFileSystem::cut_power(std::optional<std::uint64_t> torn_seed) {
  const State::Lock lock(state_->mutex);
  ++state_->generation;
  auto random = torn_seed ? std::optional<SeededRandom>(*torn_seed) : std::nullopt;
  state_->tree.lose_pending(random ? &*random : nullptr);
}

void MemoryFileSystem::kill_process() {
  const State::Lock lock(state_->mutex);
  ++state_->generation;
  state_->tree.release_locks();
}

void MemoryFileSystem::set_free_space(std::optional<std::uint64_t> bytes) {
  const State::Lock lock(state_->mutex);
  state_->free_space = bytes;
}

std::uint64_t MemoryFileSystem::no_space_count() const {
  const State::Lock lock(state_->mutex);
  return state_->no_space;
}

Result<void> MemoryFileSystem::import_tree(FileSystem& from, const Path& source,
                                           const Path& target) {
  // Without our lock: `from` may be this file system.
  VERGER_TRY(const auto tree, detail::import_directory(from, source));
  const State::Lock lock(state_->mutex);
  return state_->tree.merge_durably(target, *tree);
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::clone() const {
  const State::Lock lock(state_->mutex);
  auto copy = std::make_unique<MemoryFileSystem>();
  copy->state_->tree = state_->tree.durable_copy();
  copy->state_->numbered = state_->numbered;
  copy->state_->free_space = state_->free_space;
  copy->state_->claimed = state_->claimed;
  return copy;
}

}  // namespace verger
