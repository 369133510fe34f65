#include "engine/base/background_md5.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/assert.h"

namespace verger {
namespace {

constexpr std::size_t kMostPiecesWaiting = 4;
/// From so many pieces of one message on, the others are not waited for.
constexpr std::size_t kEnoughPieces = 3;

}  // namespace

Md5Thread::Md5Thread() : thread_([this] { hash_all(); }) {}

Md5Thread::~Md5Thread() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

std::size_t Md5Thread::begin(std::function<Result<void>(ByteView)> sink) {
  const std::lock_guard lock(mutex_);
  const auto free = std::ranges::find(messages_, false, &Message::open);
  VERGER_ASSERT(free != messages_.end());
  free->open = true;
  free->sink = std::move(sink);
  return static_cast<std::size_t>(free - messages_.begin());
}

/// Waits while several pieces have not been hashed.
Bytes Md5Thread::spare_memory(std::size_t message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return messages_[message].waiting.size() < kMostPiecesWaiting; });
  if (spare_.empty()) {
    return {};
  }
  auto piece = std::move(spare_.back());
  spare_.pop_back();
  piece.clear();
  return piece;
}

void Md5Thread::add(std::size_t message, Bytes piece) {
  if (piece.empty()) {
    return;
  }
  const std::lock_guard lock(mutex_);
  messages_[message].waiting.push_back(std::move(piece));
  changed_.notify_all();
}

Result<void> Md5Thread::sunk(std::size_t message) {
  const std::lock_guard lock(mutex_);
  return messages_[message].sunk;
}

Result<Md5Digest> Md5Thread::finish(std::size_t message) {
  std::unique_lock lock(mutex_);
  auto& own = messages_[message];
  own.ending = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return own.waiting.empty(); });
  const auto sunk = std::exchange(own, {}).sunk;
  changed_.notify_all();  // it is not waited for any longer
  const auto digest = lanes_.finish(message);
  return sunk ? Result<Md5Digest>(digest) : Result<Md5Digest>(sunk.error());
}

void Md5Thread::abandon(std::size_t message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !messages_[message].hashing; });
  messages_[message] = {};
  changed_.notify_all();
  static_cast<void>(lanes_.finish(message));  // the next message begins anew
}

bool Md5Thread::worth_hashing() const {
  bool any = false;
  bool all = true;
  bool now = false;
  for (const auto& message : messages_) {
    const auto pieces = message.waiting.size();
    any = any || pieces > 0;
    all = all && (pieces > 0 || !message.open);
    now = now || (message.ending && pieces > 0) || pieces >= kEnoughPieces;
  }
  return any && (all || now);
}

/// Pieces that will be hashed next and have not been there.
void Md5Thread::give_to_sinks(std::unique_lock<std::mutex>& lock) {
  for (auto& message : messages_) {
    if (!message.hashing || !message.sink || !message.sunk ||
        std::exchange(message.in_sink, true)) {
      continue;
    }
    const ByteView piece = message.waiting.front();
    lock.unlock();
    auto sunk = message.sink(piece);
    lock.lock();
    message.sunk = std::move(sunk);
  }
}

/// As many bytes of each message that has some.
Md5Thread::Views Md5Thread::next_views() {
  auto size = std::numeric_limits<std::size_t>::max();
  Views views;
  for (std::size_t n = 0; n < views.size(); ++n) {
    if (auto& own = messages_[n]; !own.waiting.empty()) {
      own.hashing = true;
      views[n] = ByteView(own.waiting.front()).subspan(own.hashed);
      size = std::min(size, views[n].size());
    }
  }
  for (auto& view : views) {
    view = view.first(std::min(view.size(), size));
  }
  return views;
}

void Md5Thread::note_hashed(const Views& views) {
  for (std::size_t n = 0; n < views.size(); ++n) {
    auto& own = messages_[n];
    own.hashed += views[n].size();
    if (std::exchange(own.hashing, false) && own.hashed == own.waiting.front().size()) {
      spare_.push_back(std::move(own.waiting.front()));
      own.waiting.pop_front();
      own.hashed = 0;
      own.in_sink = false;
    }
  }
}

void Md5Thread::hash_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || worth_hashing(); });
    if (stopping_) {
      return;
    }
    const auto views = next_views();
    give_to_sinks(lock);
    lock.unlock();
    lanes_.update(views);
    lock.lock();
    note_hashed(views);
    changed_.notify_all();
  }
}

BackgroundMd5::BackgroundMd5(std::shared_ptr<Md5Thread> thread, Sink sink)
    : thread_(std::move(thread)), message_(thread_->begin(std::move(sink))) {}

BackgroundMd5::~BackgroundMd5() {
  if (!finished_) {
    thread_->abandon(message_);
  }
}

void BackgroundMd5::update(ByteView bytes) {
  auto piece = thread_->spare_memory(message_);
  append_bytes(piece, bytes);
  thread_->add(message_, std::move(piece));
}

void BackgroundMd5::take(Bytes& piece) {
  auto other = thread_->spare_memory(message_);
  std::swap(piece, other);
  thread_->add(message_, std::move(other));
}

Result<Md5Digest> BackgroundMd5::finish() {
  finished_ = true;
  return thread_->finish(message_);
}

}  // namespace verger
