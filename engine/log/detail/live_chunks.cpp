#include "engine/log/detail/live_chunks.h"

#include <algorithm>

#include "engine/log/detail/chunk_state.h"

namespace verger::log::detail {

LiveChunks::Chunks LiveChunks::all() const {
  const std::lock_guard guard(mutex_);
  return table_;
}

std::shared_ptr<const Chunk> LiveChunks::at(LogPosition position) const {
  const std::lock_guard guard(mutex_);
  const auto after = std::ranges::upper_bound(
      table_, position, {}, [](const auto& chunk) { return chunk->start_position(); });
  if (after == table_.begin() || (*std::prev(after))->end_position() <= position) {
    return nullptr;
  }
  return *std::prev(after);
}

LiveChunks::Chunks LiveChunks::put(std::shared_ptr<const Chunk> chunk) {
  const std::lock_guard guard(mutex_);
  const auto first = std::ranges::lower_bound(table_, chunk->start(), {},
                                              [](const auto& one) { return one->end(); });
  const auto last = std::ranges::upper_bound(table_, chunk->end(), {},
                                             [](const auto& one) { return one->start(); });
  Chunks replaced(first, last);
  table_.insert(table_.erase(first, last), std::move(chunk));
  return replaced;
}

LiveChunks::Chunks LiveChunks::put_at_end(const Chunks& chunks) {
  const std::lock_guard guard(mutex_);
  const auto first = std::ranges::lower_bound(table_, chunks.front()->start(), {},
                                              [](const auto& one) { return one->end(); });
  Chunks replaced(first, table_.end());
  table_.erase(first, table_.end());
  table_.insert(table_.end(), chunks.begin(), chunks.end());
  return replaced;
}

void LiveChunks::retire(const Chunks& replaced) {
  std::erase_if(retired_, [](const auto& one) { return one.expired(); });
  for (const auto& old : replaced) {
    ChunkAccess::state(*old).remove_when_unused.store(true);
    retired_.push_back(old);
  }
}

void LiveChunks::refuse_from(ChunkNumber first) {
  for (const auto& chunk : all()) {
    if (chunk->start() >= first) {
      ChunkAccess::state(*chunk).gone.store(true, std::memory_order_release);
    }
  }
  for (const auto& weak : retired_) {
    if (const auto old = weak.lock(); old && old->start() >= first) {
      ChunkAccess::state(*old).remove_when_unused.store(false);
      ChunkAccess::state(*old).gone.store(true, std::memory_order_release);
    }
  }
}

void LiveChunks::replace_all(Chunks chunks) {
  const std::lock_guard guard(mutex_);
  table_ = std::move(chunks);
}

}  // namespace verger::log::detail
