#pragma once

#include <chrono>
#include <optional>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "engine/base/clock.h"
#include "engine/base/result.h"
#include "nodeagent/http/message.h"

namespace verger::http {

/// The only way to wait. Production waits on the machine's clock, the simulation on its own.
class Timers {
 public:
  virtual ~Timers() = default;
  /// Resumes on the awaiting coroutine's executor. Throws boost::system::system_error
  /// (operation_aborted) when cancelled.
  virtual net::awaitable<void> sleep_for(std::chrono::milliseconds duration) = 0;
};

/// The machine's timers.
Timers& system_timers();

/// kTimeout when `work` does not finish in time; `work` is then cancelled.
template <class T>
net::awaitable<Result<T>> with_timeout(Timers& timers, net::awaitable<Result<T>> work,
                                       std::chrono::milliseconds limit) {
  using namespace net::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
  auto outcome = co_await (std::move(work) || timers.sleep_for(limit));
  if (outcome.index() == 1) {
    co_return Error{Errc::kTimeout, "no answer in time"};
  }
  co_return std::get<0>(std::move(outcome));
}

}  // namespace verger::http
