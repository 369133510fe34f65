#include "engine/scavenge/parallel_runner.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace verger::scavenge {
namespace {

class InlineRunner final : public ParallelRunner {
 public:
  void run(const std::vector<std::function<void()>>& pieces) override {
    for (const auto& piece : pieces) {
      piece();
    }
  }
};

class ThreadRunner final : public ParallelRunner {
 public:
  explicit ThreadRunner(int threads) {
    for (int n = 1; n < threads; ++n) {
      workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }
  ~ThreadRunner() override {
    for (auto& worker : workers_) {
      worker.request_stop();
    }
    wake_.notify_all();
  }
  ThreadRunner(const ThreadRunner&) = delete;
  ThreadRunner& operator=(const ThreadRunner&) = delete;

  void run(const std::vector<std::function<void()>>& pieces) override {
    std::unique_lock lock(mutex_);
    pieces_ = &pieces;
    next_ = 0;
    unfinished_ = pieces.size();
    wake_.notify_all();
    take(lock);
    finished_.wait(lock, [this] { return unfinished_ == 0; });
    pieces_ = nullptr;
  }

 private:
  /// Runs pieces until none is left to start.
  void take(std::unique_lock<std::mutex>& lock) {
    while (pieces_ != nullptr && next_ < pieces_->size()) {
      const auto& piece = (*pieces_)[next_++];
      lock.unlock();
      piece();
      lock.lock();
      if (--unfinished_ == 0) {
        finished_.notify_all();
      }
    }
  }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (
        wake_.wait(lock, stop, [this] { return pieces_ != nullptr && next_ < pieces_->size(); })) {
      take(lock);
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable finished_;
  const std::vector<std::function<void()>>* pieces_ = nullptr;
  std::size_t next_ = 0;
  std::size_t unfinished_ = 0;
  std::vector<std::jthread> workers_;  ///< last: they end before what they use
};

}  // namespace

ParallelRunner& inline_runner() {
  static InlineRunner runner;
  return runner;
}

std::unique_ptr<ParallelRunner> make_thread_runner(int threads) {
  return std::make_unique<ThreadRunner>(threads);
}

}  // namespace verger::scavenge
