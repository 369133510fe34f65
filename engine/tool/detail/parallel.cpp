#include "engine/tool/detail/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace verger::tool {

int default_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
}

void run_parallel(std::size_t count, int threads, const std::function<void(std::size_t)>& piece,
                  const std::function<void()>& tick) {
  if (threads <= 1 || count <= 1) {
    for (std::size_t n = 0; n < count; ++n) {
      piece(n);
      tick();
    }
    return;
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::condition_variable ended;
  auto running = std::min(static_cast<std::size_t>(threads), count);
  std::vector<std::jthread> workers;
  for (std::size_t n = running; n > 0; --n) {
    workers.emplace_back([&] {
      for (auto mine = next++; mine < count; mine = next++) {
        piece(mine);
      }
      const std::lock_guard lock(mutex);
      --running;
      ended.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, std::chrono::milliseconds(200), [&] { return running == 0; })) {
    lock.unlock();
    tick();
    lock.lock();
  }
}

}  // namespace verger::tool
