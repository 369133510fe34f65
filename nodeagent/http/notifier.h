#pragma once

#include <cstdint>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "nodeagent/http/message.h"

namespace verger::http {

/// Wakes coroutines of one executor. It waits for no time: deadlines are looked at by the
/// ticker, which notifies.
class Notifier {
 public:
  explicit Notifier(const net::any_io_executor& executor)
      : timer_(executor, net::steady_timer::time_point::max()) {}

  void notify() {
    ++notices_;
    timer_.cancel();
  }
  /// Returns at the next notify(); throws operation_aborted when the coroutine is cancelled.
  net::awaitable<void> wait() {
    const auto before = notices_;
    co_await timer_.async_wait(net::as_tuple(net::use_awaitable));
    if (notices_ == before) {
      throw boost::system::system_error(net::error::operation_aborted);
    }
  }

 private:
  net::steady_timer timer_;
  std::uint64_t notices_ = 0;
};

}  // namespace verger::http
