#pragma once

#include <chrono>

#include <boost/asio/awaitable.hpp>

#include "engine/base/clock.h"
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

}  // namespace verger::http
