#include "engine/base/detail/memory_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace verger::detail {
namespace {

/// Calls visit(name) for each name of a path; "." and empty ones are skipped, and a relative path
/// counts from the root. Stops where visit returns false.
template <class Visit>
bool for_each_name(std::string_view path, Visit visit) {
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto name = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (!name.empty() && name != "." && !visit(name)) {
      return false;
    }
  }
  return true;
}

NodePtr copy_durably(const MemoryNode& from) {
  auto copy = std::make_shared<MemoryNode>();
  copy->is_directory = from.is_directory;
  copy->read_only = from.read_only;
  copy->number = from.number;
  copy->content = from.content;
  for (const auto& [name, node] : from.live) {
    copy->live.emplace_hint(copy->live.end(), name, copy_durably(*node));
  }
  copy->durable = copy->live;
  return copy;
}

void lose_pending_below(MemoryNode& node, Random* torn) {
  node.locked = false;
  node.lose_pending(torn);
  node.live = node.durable;
  for (const auto& [name, child] : node.live) {
    lose_pending_below(*child, torn);
  }
}

void release_locks_below(MemoryNode& node) {
  node.locked = false;
  for (const auto& [name, child] : node.live) {
    release_locks_below(*child);
  }
}

void merge_below(MemoryNode& into, const MemoryNode& tree) {
  for (const auto& [name, node] : tree.live) {
    const auto there = into.live.find(name);
    if (there != into.live.end() && there->second->is_directory && node->is_directory) {
      into.durable.insert_or_assign(name, there->second);
      merge_below(*there->second, *node);
    } else {
      into.live.insert_or_assign(name, node);
      into.durable.insert_or_assign(name, node);
    }
  }
}

Result<NodePtr> import_file(FileSystem& from, const Path& path) {
  VERGER_TRY(const auto file, from.open(path, OpenMode::kRead));
  VERGER_TRY(const std::uint64_t size, file->size());
  if (size > kMemoryFileSizeMax) {
    return path_error(Errc::kUnsupported, path, "too large for a disk in memory");
  }
  auto node = std::make_shared<MemoryNode>();
  node->content.resize(size);
  Bytes buffer(256 * kPageSize);
  for (std::uint64_t offset = 0; offset < size;) {
    VERGER_TRY(const std::size_t got, file->read_at(offset, buffer));
    if (got == 0) {
      break;
    }
    for (std::size_t at = 0; at < got; at += kPageSize) {
      const auto page = ByteView(buffer).subspan(at, std::min<std::size_t>(got - at, kPageSize));
      if (std::ranges::any_of(page, [](std::byte byte) { return byte != std::byte{0}; })) {
        node->content.write(offset + at, page);
      }
    }
    offset += got;
  }
  return node;
}

}  // namespace

Error path_error(Errc code, const Path& path, std::string_view what) {
  return {code, fmt::format("{}: {}", path.string(), what)};
}

NodePtr make_directory_node() {
  auto node = std::make_shared<MemoryNode>();
  node->is_directory = true;
  return node;
}

bool contains(const MemoryNode& tree, const MemoryNode* wanted) {
  return &tree == wanted || std::ranges::any_of(tree.live, [&](const auto& entry) {
    return contains(*entry.second, wanted);
  });
}

Result<NodePtr> import_directory(FileSystem& from, const Path& path) {
  VERGER_TRY(const auto entries, from.list(path));
  auto directory = make_directory_node();
  for (const auto& entry : entries) {
    const Path child = path / entry.name;
    VERGER_TRY(auto node,
               entry.is_directory ? import_directory(from, child) : import_file(from, child));
    directory->live.emplace(entry.name, std::move(node));
  }
  directory->durable = directory->live;
  return directory;
}

NodePtr MemoryTree::find(const Path& path) const {
  NodePtr node = root_;
  const bool found = for_each_name(path.native(), [&](std::string_view name) {
    const auto next = node->live.find(name);
    if (next == node->live.end()) {
      return false;
    }
    node = next->second;
    return true;
  });
  return found ? node : nullptr;
}

Result<MemoryTree::Place> MemoryTree::place(const Path& path) const {
  Place place{nullptr, {}, root_};
  const bool found = for_each_name(path.native(), [&](std::string_view name) {
    if (!place.node || !place.node->is_directory || name == "..") {
      return false;
    }
    place.directory = place.node;
    place.name = name;
    const auto next = place.directory->live.find(name);
    place.node = next == place.directory->live.end() ? nullptr : next->second;
    return true;
  });
  if (!found) {
    return path_error(Errc::kNotFound, path, "No such file or directory");
  }
  if (!place.directory) {
    return path_error(Errc::kIo, path, "this is the root directory");
  }
  return place;
}

Result<MemoryTree::Place> MemoryTree::existing(const Path& path) const {
  VERGER_TRY(auto found, place(path));
  if (!found.node) {
    return path_error(Errc::kNotFound, path, "No such file or directory");
  }
  return found;
}

void MemoryTree::change(PendingName change) {
  if (change.erase_from) {
    change.erase_from->live.erase(change.erase_name);
  }
  if (change.insert_into) {
    change.insert_into->live.insert_or_assign(change.insert_name, change.node);
  }
  pending_.push_back(std::move(change));
}

void MemoryTree::settle(const NodePtr& directory) {
  std::set<const MemoryNode*> touched{directory.get()};
  std::vector<bool> settled(pending_.size());
  for (std::size_t i = pending_.size(); i-- > 0;) {
    const auto* from = pending_[i].erase_from.get();
    const auto* into = pending_[i].insert_into.get();
    settled[i] = touched.contains(from) || touched.contains(into);
    if (settled[i]) {
      for (const auto* node : {from, into}) {
        if (node != nullptr) {
          touched.insert(node);
        }
      }
    }
  }
  std::vector<PendingName> rest;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (settled[i]) {
      pending_[i].apply_to_disk();
    } else {
      rest.push_back(std::move(pending_[i]));
    }
  }
  pending_ = std::move(rest);
}

void MemoryTree::lose_pending(Random* torn) {
  if (torn != nullptr) {
    const std::uint64_t survive = torn->below(pending_.size() + 1);
    for (std::size_t i = 0; i < survive; ++i) {
      pending_[i].apply_to_disk();
    }
  }
  pending_.clear();
  lose_pending_below(*root_, torn);
}

void MemoryTree::release_locks() { release_locks_below(*root_); }

MemoryTree MemoryTree::durable_copy() const {
  MemoryTree copy;
  copy.root_ = copy_durably(*root_);
  return copy;
}

Result<void> MemoryTree::merge_durably(const Path& target, const MemoryNode& tree) {
  NodePtr directory = root_;
  const bool made = for_each_name(target.native(), [&](std::string_view name) {
    auto node =
        directory->live.contains(name) ? directory->live.find(name)->second : make_directory_node();
    directory->live.insert_or_assign(std::string(name), node);
    directory->durable.insert_or_assign(std::string(name), node);
    directory = std::move(node);
    return directory->is_directory;
  });
  if (!made) {
    return path_error(Errc::kExists, target, "a file is where the directory should be");
  }
  merge_below(*directory, tree);
  return {};
}

}  // namespace verger::detail
