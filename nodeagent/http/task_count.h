#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "nodeagent/http/message.h"

namespace verger::http {

/// Counts the coroutines that its owner has started, and lets others wait until all have ended.
/// Everything on the owner's one executor. What those who wait look at may outlive the owner.
class TaskCount {
 public:
  using Limit = std::chrono::steady_clock::time_point;

  explicit TaskCount(const net::any_io_executor& executor);

  void begin();
  void end();
  [[nodiscard]] std::size_t size() const;
  /// Until none is left, or to the limit.
  net::awaitable<void> wait_for_all(Limit limit = Limit::max());

 private:
  struct State;
  static net::awaitable<void> wait(std::shared_ptr<State> state, Limit limit);
  std::shared_ptr<State> state_;
};

}  // namespace verger::http
