#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/controller/controller_harness.h"

namespace verger::test {

/// What is counted until a controller dies.
enum class CrashAfter : std::uint8_t {
  kEvents,  ///< journaled behind the start of the run
  kOrders,  ///< requests to agents for an operation, that of the run's start on
  kDeeds,   ///< requests that act, of agents and of servers
};

struct LifeWithCrash {
  std::string run;
  bool crashed = false;  ///< false: the run has ended before it came to that
};

/// Has `start` begin a run; after the `nth` of these the controller dies, and the next one boots.
inline LifeWithCrash live_with_crash(ControllerHarness& h, CrashAfter after, std::int64_t nth,
                                     const std::function<std::string()>& start) {
  std::int64_t count = 0;
  if (after != CrashAfter::kEvents) {
    h.cluster.acted = [&count, after](const FakeNode&, const http::Request& request) {
      const bool order = request.target.starts_with("/agent/v1/operations");
      count += order || after == CrashAfter::kDeeds ? 1 : 0;
    };
  }
  LifeWithCrash out{.run = start()};
  const auto first = h.journal->last_sequence()->value();
  h.news = true;
  h.run_until(
      [&] {
        const bool news = std::exchange(h.news, false);
        if (after == CrashAfter::kEvents && news) {
          count = h.journal->last_sequence()->value() - first;
        }
        out.crashed = out.crashed || count >= nth;
        return out.crashed || (news && controller::has_ended(h.state(out.run).status));
      },
      std::chrono::hours(1));
  h.cluster.acted = nullptr;
  if (out.crashed) {
    h.crash();
    h.boot();
  }
  return out;
}

/// `live(nth)` with nth = 1, 1 + `every`, ... until one says that nothing crashed: the highest nth
/// before it. 0 after a failure.
inline int crash_at_each(std::int64_t every, const std::function<bool(std::int64_t nth)>& live) {
  for (std::int64_t nth = 1;; nth += every) {
    SCOPED_TRACE(fmt::format("after number {}", nth));
    const bool crashed = live(nth);
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!crashed) {
      return static_cast<int>(nth) - 1;
    }
  }
}

/// Every order, but each second event: between two of those, something is done at most once.
inline std::int64_t places_apart(CrashAfter after) { return after == CrashAfter::kEvents ? 2 : 1; }

}  // namespace verger::test
