#pragma once

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/message.h"

namespace verger::controller {

/// Runs all of `work` side by side on the caller's executor and gives the results in its order. An
/// exception of any of them is thrown once all have ended. What it keeps is owned by the coroutines
/// alone, so that it goes away with their executor.
template <class T>
net::awaitable<std::vector<T>> gather(std::vector<net::awaitable<T>> work) {
  using Channel = net::experimental::channel<void(boost::system::error_code)>;
  struct Shared {
    Shared(const net::any_io_executor& executor, std::size_t count)
        : results(count), done(executor, count) {}
    std::vector<T> results;
    std::exception_ptr failure;
    Channel done;
  };
  const auto executor = co_await net::this_coro::executor;
  const auto shared = std::make_shared<Shared>(executor, work.size());
  for (std::size_t i = 0; i < work.size(); ++i) {
    net::co_spawn(executor, std::move(work[i]), [shared, i](std::exception_ptr failure, T result) {
      if (failure) {
        shared->failure = failure;
      } else {
        shared->results[i] = std::move(result);
      }
      shared->done.try_send(boost::system::error_code{});
    });
  }
  for (std::size_t i = 0; i < work.size(); ++i) {
    co_await shared->done.async_receive(net::as_tuple(net::use_awaitable));
  }
  if (shared->failure) {
    std::rethrow_exception(shared->failure);
  }
  co_return std::move(shared->results);
}

}  // namespace verger::controller
