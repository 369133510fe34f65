#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/experimental/channel.hpp>

#include "controller/executor/detail/core.h"

namespace verger::controller::detail {

struct Waker {
  explicit Waker(const net::any_io_executor& executor) : channel(executor, 1) {}
  net::experimental::channel<void(boost::system::error_code)> channel;
};

}  // namespace verger::controller::detail
