#pragma once

#include <functional>
#include <map>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "engine/base/clock.h"
#include "nodeagent/http/timers.h"

namespace verger::test {

/// A clock and its timers: time passes only when nothing else is left to do. One thread. What it
/// keeps of sleeping coroutines is weak, so they may go away with their io_context.
class VirtualTime final : public Clock, public http::Timers {
 public:
  Ticks now() override;
  Monotonic monotonic() override { return now_; }
  net::awaitable<void> sleep_for(std::chrono::milliseconds duration) override;

  /// The wall clock is off by so much from now on; the monotonic one is not.
  void jump(std::chrono::milliseconds by) { skew_ += by; }
  /// Runs `context` until `done`, step by step; false when `limit` of virtual time has passed.
  bool run(net::io_context& context, const std::function<bool()>& done,
           std::chrono::milliseconds limit);
  /// Moves on to the next timer; false when no coroutine sleeps.
  bool advance();

 private:
  struct Sleeper;
  Monotonic now_{0};
  std::chrono::milliseconds skew_{0};
  std::multimap<Monotonic, std::weak_ptr<Sleeper>> sleepers_;
};

}  // namespace verger::test
