#include "engine/backup/detail/copy_queue.h"

#include <algorithm>

namespace verger::backup::detail {

void KnownFiles::add(const std::vector<BackedUpFile>& files) {
  for (const auto& file : files) {
    if (!file.identity.empty()) {
      by_path_.emplace(file.path, file);
    }
  }
}

Result<std::optional<Sha256Digest>> KnownFiles::find(BlobStore& store,
                                                     const BackedUpFile& wanted) const {
  const auto [first, last] = by_path_.equal_range(wanted.path);
  for (auto at = first; at != last; ++at) {
    const auto& known = at->second;
    if (wanted.identity.empty() || known.identity != wanted.identity || known.size != wanted.size ||
        known.restored_size != wanted.restored_size) {
      continue;
    }
    VERGER_TRY(const auto stored, store.blob_size(known.sha256));
    if (stored == known.size) {
      return std::optional(known.sha256);
    }
  }
  return std::optional<Sha256Digest>();
}

Result<void> CopyQueue::fill() {
  while (running_.size() < lanes_ && !waiting_.empty()) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    VERGER_TRY(const auto known, known_.find(store_, next.entry));
    if (known) {
      next.entry.sha256 = *known;
      reused_ += next.entry.size;
      stored_.push_back(std::move(next.entry));
      continue;
    }
    VERGER_TRY(auto copy, FileCopy::begin(store_, std::move(next.read), next.entry.size,
                                          std::move(next.cache)));
    running_.push_back({.entry = std::move(next.entry), .copy = std::move(copy)});
  }
  return {};
}

Result<bool> CopyQueue::step(std::uint64_t most) {
  VERGER_RETURN_IF_ERROR(fill());
  std::vector<std::function<void()>> pieces;
  pieces.reserve(running_.size());
  for (auto& lane : running_) {
    pieces.emplace_back([&lane, most] { lane.outcome = lane.copy.step(most); });
  }
  runner_.run(pieces);
  for (auto& lane : running_) {
    if (!lane.outcome) {
      return lane.outcome.error();
    }
    copied_ += lane.copy.copied() - std::exchange(lane.seen, lane.copy.copied());
    if (*lane.outcome) {
      lane.entry.sha256 = lane.copy.digest();
      stored_.push_back(std::move(lane.entry));
    }
  }
  std::erase_if(running_, [](const Lane& lane) { return *lane.outcome; });
  return running_.empty() && waiting_.empty();
}

}  // namespace verger::backup::detail
