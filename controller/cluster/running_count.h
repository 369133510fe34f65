#pragma once

#include <cstddef>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/message.h"

namespace verger::controller {

/// Counts the coroutines that its owner has started, and lets one other wait until all have ended.
/// Everything on the owner's one executor; a waiting coroutine keeps the owner alive.
class RunningCount {
 public:
  explicit RunningCount(const net::any_io_executor& executor) : ended_(executor, 1) {}

  void begin() { ++count_; }
  void end() {
    --count_;
    ended_.try_send(boost::system::error_code{});
  }
  net::awaitable<void> wait_for_all() {
    while (count_ > 0) {
      co_await ended_.async_receive(net::as_tuple(net::use_awaitable));
    }
  }

 private:
  std::size_t count_ = 0;
  /// Holds one message where something has ended since the last look.
  net::experimental::channel<void(boost::system::error_code)> ended_;
};

}  // namespace verger::controller
