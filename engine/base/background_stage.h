#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace verger {

/// Works on pieces in a thread of its own, one after the other in the order in which they are
/// given, while the one who gives them makes the next. One thread uses it. Its destruction drops
/// what was not begun.
template <class Piece>
class BackgroundStage {
 public:
  /// `work` runs in the thread; it does not throw.
  explicit BackgroundStage(std::function<void(Piece&)> work)
      : work_(std::move(work)), thread_([this] { work_on_all(); }) {}
  ~BackgroundStage() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  BackgroundStage(const BackgroundStage&) = delete;
  BackgroundStage& operator=(const BackgroundStage&) = delete;

  void give(std::unique_ptr<Piece> piece) {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
    changed_.notify_all();
  }
  /// The oldest piece that was not taken, once its work is done; nullptr: there is none.
  std::unique_ptr<Piece> take() {
    std::unique_lock lock(mutex_);
    if (pieces_.empty()) {
      return nullptr;
    }
    changed_.wait(lock, [this] { return done_ > 0; });
    return take_first();
  }
  /// The same without waiting; nullptr: there is none whose work is done.
  std::unique_ptr<Piece> take_done() {
    const std::lock_guard lock(mutex_);
    if (done_ == 0) {
      return nullptr;
    }
    return take_first();
  }
  /// Pieces that were given and not taken.
  [[nodiscard]] std::size_t size() {
    const std::lock_guard lock(mutex_);
    return pieces_.size();
  }

 private:
  std::unique_ptr<Piece> take_first() {
    auto piece = std::move(pieces_.front());
    pieces_.pop_front();
    --done_;
    return piece;
  }

  void work_on_all() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || done_ < pieces_.size(); });
      if (stopping_) {
        return;
      }
      auto& piece = *pieces_[done_];
      lock.unlock();
      work_(piece);
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::function<void(Piece&)> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Piece>> pieces_;  ///< in order
  std::size_t done_ = 0;                       ///< the first ones
  bool stopping_ = false;
  std::jthread thread_;  ///< last: it ends before what it uses
};

}  // namespace verger
