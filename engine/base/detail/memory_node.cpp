#include "engine/base/detail/memory_node.h"

#include <algorithm>

namespace verger::detail {
namespace {

constexpr std::uint64_t kSectorSize = 512;

/// The same change once more, after it was undone.
struct Redo {
  PendingWrite::Kind kind;
  std::uint64_t offset;
  Bytes bytes;
  bool durable;
};

Redo undo(PagedBytes& content, const PendingWrite& change) {
  Redo redo{change.kind, change.offset, Bytes(change.length), change.durable};
  if (change.kind == PendingWrite::Kind::kResize) {
    if (change.old_size > change.offset) {
      content.restore_tail(change.old_size, change.tail);
    } else {
      content.resize(change.old_size);
    }
    return redo;
  }
  content.read(change.offset, redo.bytes);
  content.write(change.offset, change.overwritten);
  content.resize(change.old_size);
  return redo;
}

/// Which part of a write reached the disk when the power went: all, nothing, or the sectors before
/// or after some sector boundary.
void apply_torn(PagedBytes& content, const Redo& redo, Random& random) {
  const auto fate = random.below(3);
  if (fate == 0) {
    return;
  }
  if (redo.kind == PendingWrite::Kind::kResize) {
    content.resize(redo.offset);
    return;
  }
  const std::uint64_t end = redo.offset + redo.bytes.size();
  const std::uint64_t first = redo.offset / kSectorSize + 1;  // boundaries strictly inside it
  const std::uint64_t last = (end - 1) / kSectorSize;
  if (fate == 1 || first > last) {
    content.write(redo.offset, redo.bytes);
    return;
  }
  const std::uint64_t boundary = (first + random.below(last - first + 1)) * kSectorSize;
  const auto bytes = ByteView(redo.bytes);
  if (random.below(2) == 0) {
    content.write(redo.offset, bytes.first(boundary - redo.offset));
  } else {
    content.write(boundary, bytes.subspan(boundary - redo.offset));
  }
}

}  // namespace

void MemoryNode::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) {
    return;
  }
  PendingWrite change;
  change.old_size = content.size();
  change.offset = offset;
  change.length = bytes.size();
  if (offset < change.old_size) {
    change.overwritten.resize(std::min<std::uint64_t>(bytes.size(), change.old_size - offset));
    content.read(offset, change.overwritten);
  }
  pending.push_back(std::move(change));
  content.write(offset, bytes);
}

void MemoryNode::resize(std::uint64_t size) {
  PendingWrite change;
  change.kind = PendingWrite::Kind::kResize;
  change.old_size = content.size();
  change.offset = size;
  change.tail = content.tail_from(size);
  pending.push_back(std::move(change));
  content.resize(size);
}

void MemoryNode::make_durable() {
  if (std::ranges::none_of(pending, &PendingWrite::dropped)) {
    pending.clear();
    return;
  }
  for (auto& change : pending) {
    change.durable = !change.dropped;
  }
}

void MemoryNode::drop_pending() {
  for (auto& change : pending) {
    change.dropped = !change.durable;
  }
}

void MemoryNode::lose_pending(Random* torn) {
  std::vector<Redo> undone;
  for (; !pending.empty(); pending.pop_back()) {
    undone.push_back(undo(content, pending.back()));
  }
  for (; !undone.empty(); undone.pop_back()) {
    const Redo& redo = undone.back();
    if (!redo.durable) {
      if (torn != nullptr) {
        apply_torn(content, redo, *torn);
      }
    } else if (redo.kind == PendingWrite::Kind::kResize) {
      content.resize(redo.offset);
    } else {
      content.write(redo.offset, redo.bytes);
    }
  }
}

void PendingName::apply_to_disk() const {
  if (erase_from) {
    erase_from->durable.erase(erase_name);
  }
  if (insert_into) {
    insert_into->durable.insert_or_assign(insert_name, node);
  }
}

}  // namespace verger::detail
