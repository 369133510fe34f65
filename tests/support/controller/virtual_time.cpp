#include "tests/support/controller/virtual_time.h"

#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace verger::test {

struct VirtualTime::Sleeper {
  explicit Sleeper(const net::any_io_executor& executor) : channel(executor, 1) {}
  net::experimental::channel<void(boost::system::error_code)> channel;
};

Ticks VirtualTime::now() {
  constexpr std::int64_t kStart = 638'528'832'000'000'000;  // 2024-06-02T00:00:00Z
  return Ticks(kStart + (now_ + skew_).count() / 100);
}

net::awaitable<void> VirtualTime::sleep_for(std::chrono::milliseconds duration) {
  const auto sleeper = std::make_shared<Sleeper>(co_await net::this_coro::executor);
  sleepers_.emplace(now_ + duration, sleeper);
  co_await sleeper->channel.async_receive(net::use_awaitable);
}

bool VirtualTime::advance() {
  while (!sleepers_.empty()) {
    const auto first = sleepers_.begin();
    const auto sleeper = first->second.lock();
    const auto at = first->first;
    sleepers_.erase(first);
    if (sleeper) {
      now_ = std::max(now_, at);
      sleeper->channel.try_send(boost::system::error_code{});
      return true;
    }
  }
  return false;
}

bool VirtualTime::run(net::io_context& context, const std::function<bool()>& done,
                      std::chrono::milliseconds limit) {
  const auto end = now_ + limit;
  for (;;) {
    context.restart();
    while (context.poll_one() > 0) {
      if (done()) {
        return true;
      }
    }
    if (done()) {
      return true;
    }
    if (now_ > end || !advance()) {
      return false;
    }
  }
}

}  // namespace verger::test
