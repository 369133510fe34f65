#include "controller/daemon/agent_renewal.h"

#include <gtest/gtest.h>
#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

TEST(AgentRenewal, ContinuesAfterAnException) {
  test::ControllerHarness h;
  h.boot();
  SeededRandom random{1};
  AgentBook book({.journal = *h.journal, .epoch = h.epoch, .random = random, .clock = h.time});
  ASSERT_TRUE(book.load().has_value());
  int looks = 0;
  AgentRenewal parts{.book = book,
                     .registry = *h.registry,
                     .clock = h.time,
                     .timers = h.time,
                     .log = null_log(),
                     .client_of = [&h](const EnrolledAgent&) -> http::Client& { return h.cluster; },
                     .renew_own = [&looks]() -> Result<void> {
                       if (++looks == 1) {
                         throw std::runtime_error("out of memory");
                       }
                       return {};
                     },
                     .look_every = std::chrono::minutes(1)};
  bool ended = false;
  net::co_spawn(*h.context, AgentRenewal::run(std::move(parts)),
                [&ended](std::exception_ptr) { ended = true; });
  EXPECT_TRUE(h.run_until([&] { return looks >= 3 || ended; }, std::chrono::minutes(10)));
  EXPECT_FALSE(ended);
  h.crash();
}

}  // namespace
}  // namespace verger::controller
