#pragma once

#include <atomic>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/job.h"
#include "engine/scavenge/parallel_runner.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/timers.h"

namespace verger::node {

/// Set from any thread; a runner looks at it between two steps.
class StopFlag {
 public:
  void request() { requested_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_ = false;
};

/// Drives long engine work.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  /// Steps `job` until it is done; rests as it says. Errors: the job's own; kCancelled when `stop`
  /// was requested (the job is then between two steps and may be dropped).
  virtual net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                           std::shared_ptr<const StopFlag> stop) = 0;
  /// For jobs that hand out independent items. nullptr: one after the other.
  virtual std::unique_ptr<scavenge::ParallelRunner> make_parallel(int threads) {
    static_cast<void>(threads);
    return nullptr;
  }
};

/// Steps on the caller's executor, giving way after each step: for the simulation, where a step
/// takes `pace` of its time.
class InlineJobRunner final : public JobRunner {
 public:
  explicit InlineJobRunner(http::Timers& timers, Budget budget = {},
                           std::chrono::milliseconds pace = std::chrono::milliseconds(0))
      : timers_(timers), budget_(budget), pace_(pace) {}
  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const StopFlag> stop) override;

 private:
  http::Timers& timers_;
  Budget budget_;
  std::chrono::milliseconds pace_;
};

/// Steps on `pool` (a thread pool's executor), so that the node's executor stays free.
class PoolJobRunner final : public JobRunner {
 public:
  PoolJobRunner(net::any_io_executor pool, http::Timers& timers)
      : pool_(std::move(pool)), timers_(timers) {}
  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const StopFlag> stop) override;
  std::unique_ptr<scavenge::ParallelRunner> make_parallel(int threads) override;

 private:
  net::any_io_executor pool_;
  http::Timers& timers_;
};

}  // namespace verger::node
