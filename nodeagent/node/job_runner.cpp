#include "nodeagent/node/job_runner.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace verger::node {
namespace {

/// One step on the executor that this runs on.
net::awaitable<Result<StepOutcome>> step_once(std::shared_ptr<Job> job, Budget budget) {
  co_return job->step(budget);
}

/// Rests in pieces, so that a stop does not wait for a long one to end.
net::awaitable<void> rest(http::Timers& timers, std::chrono::milliseconds duration,
                          std::shared_ptr<const StopFlag> stop) {
  constexpr std::chrono::milliseconds kPiece{50};
  while (duration > std::chrono::milliseconds(0) && !stop->requested()) {
    const auto piece = std::min(duration, kPiece);
    co_await timers.sleep_for(piece);
    duration -= piece;
  }
}

Error stopped() { return {Errc::kCancelled, "stopped between two steps"}; }

}  // namespace

net::awaitable<Result<void>> InlineJobRunner::run(std::shared_ptr<Job> job,
                                                  std::shared_ptr<const StopFlag> stop) {
  auto& timers = timers_;
  const auto budget = budget_;
  const auto pace = pace_;
  for (;;) {
    if (stop->requested()) {
      co_return stopped();
    }
    VERGER_CO_TRY(const auto outcome, job->step(budget));
    // Even without a rest other work, and virtual time, get their turn; after the last step, too.
    co_await timers.sleep_for(pace);
    if (outcome.kind == StepOutcome::Kind::kDone) {
      co_return Result<void>();
    }
    if (outcome.kind == StepOutcome::Kind::kRest) {
      co_await rest(timers, outcome.rest, stop);
    }
  }
}

std::unique_ptr<scavenge::ParallelRunner> PoolJobRunner::make_parallel(int threads) {
  return threads > 1 ? scavenge::make_thread_runner(threads) : nullptr;
}

net::awaitable<Result<void>> PoolJobRunner::run(std::shared_ptr<Job> job,
                                                std::shared_ptr<const StopFlag> stop) {
  const auto pool = pool_;
  auto& timers = timers_;
  for (;;) {
    if (stop->requested()) {
      co_return stopped();
    }
    // A step is not cancelled in the middle: the job must not be destroyed under it.
    const auto outcome =
        co_await net::co_spawn(pool, step_once(job, Budget{16384}), net::use_awaitable);
    if (!outcome) {
      co_return outcome.error();
    }
    if (outcome->kind == StepOutcome::Kind::kDone) {
      co_return Result<void>();
    }
    if (outcome->kind == StepOutcome::Kind::kRest) {
      co_await rest(timers, outcome->rest, stop);
    }
  }
}

}  // namespace verger::node
