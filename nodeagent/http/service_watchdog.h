#pragma once

#include <boost/asio/awaitable.hpp>

#include "engine/base/service_notify.h"
#include "nodeagent/http/timers.h"

namespace verger::http {

/// Reports that the event loop it runs on still works, as often as the service manager expects;
/// returns at once where none does. `notify` and `timers` outlive it.
inline net::awaitable<void> feed_watchdog(const ServiceNotify& notify, Timers& timers) {
  const auto interval = notify.watchdog_interval();
  while (interval) {
    notify.alive();
    co_await timers.sleep_for(*interval);
  }
}

}  // namespace verger::http
