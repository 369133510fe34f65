#include "nodeagent/http/timers.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace verger::http {
namespace {

class SystemTimers final : public Timers {
 public:
  net::awaitable<void> sleep_for(std::chrono::milliseconds duration) override {
    net::steady_timer timer(co_await net::this_coro::executor, duration);
    co_await timer.async_wait(net::use_awaitable);
  }
};

}  // namespace

Timers& system_timers() {
  static SystemTimers timers;
  return timers;
}

}  // namespace verger::http
