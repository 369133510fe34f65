#include "engine/base/background_md5.h"

#include <utility>

namespace verger {
namespace {

constexpr std::size_t kMostPiecesWaiting = 4;

}  // namespace

BackgroundMd5::BackgroundMd5() : thread_([this] { hash_all(); }) {}

BackgroundMd5::~BackgroundMd5() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

/// Waits while several pieces have not been hashed.
Bytes BackgroundMd5::spare_memory() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kMostPiecesWaiting; });
  if (spare_.empty()) {
    return {};
  }
  auto piece = std::move(spare_.back());
  spare_.pop_back();
  piece.clear();
  return piece;
}

void BackgroundMd5::add(Bytes piece) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(piece));
  changed_.notify_all();
}

void BackgroundMd5::update(ByteView bytes) {
  auto piece = spare_memory();
  append_bytes(piece, bytes);
  add(std::move(piece));
}

void BackgroundMd5::take(Bytes& piece) {
  auto other = spare_memory();
  std::swap(piece, other);
  add(std::move(other));
}

Md5Digest BackgroundMd5::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !hashing_; });
  return md5_.finish();
}

void BackgroundMd5::hash_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) {
      return;
    }
    auto pieces = std::exchange(waiting_, {});
    hashing_ = true;
    changed_.notify_all();
    lock.unlock();
    for (const auto& piece : pieces) {
      md5_.update(piece);
    }
    lock.lock();
    hashing_ = false;
    for (auto& piece : pieces) {
      spare_.push_back(std::move(piece));
    }
    changed_.notify_all();
  }
}

}  // namespace verger
