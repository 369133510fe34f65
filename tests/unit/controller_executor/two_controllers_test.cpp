#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>

#include "controller/operations/operation_modules.h"
#include "tests/support/controller/controller_harness.h"

// Tournament: two controllers. Both live; the second takes over in the middle of each single
// request of the first's that acts, while the first continues as if nothing had happened.
namespace verger::controller {
namespace {

using test::ControllerHarness;

TEST(TwoControllers, WhicheverMomentTheSecondTakesOverEachThingIsDoneOnce) {
  bool taken_over = true;
  int moments = 0;
  for (int moment = 1; taken_over; ++moment) {
    SCOPED_TRACE(fmt::format("the second takes over at acting request {}", moment));
    ControllerHarness h;
    h.boot();
    h.register_cluster();
    SeededRandom random(static_cast<std::uint64_t>(moment));
    auto kinds = standard_step_kinds();
    std::unique_ptr<Executor> second;
    int seen = 0;
    int most_at_once = 0;
    h.cluster.acted = [&](const test::FakeNode&, const http::Request&) {
      int now = 0;
      for (const auto& node : h.cluster.nodes) {
        now += node.running ? 1 : 0;
      }
      most_at_once = std::max(most_at_once, now);
      if (++seen != moment) {
        return;
      }
      net::post(*h.context, [&] {
        const auto epoch = h.journal->begin_epoch("second");
        ASSERT_TRUE(epoch.has_value());
        second = std::make_unique<Executor>(ExecutorParts{.executor = h.context->get_executor(),
                                                          .journal = *h.journal,
                                                          .registry = *h.registry,
                                                          .network = h.network(),
                                                          .random = random,
                                                          .kinds = kinds,
                                                          .epoch = *epoch,
                                                          .options = h.options});
        ASSERT_TRUE(second->start().has_value());
      });
    };
    const auto run = h.start_scavenge(ControllerHarness::quick_policy());
    const auto state = [&] {
      const auto found = (second ? second.get() : h.executor.get())->find_run(run);
      return found ? **found : RunState();
    };
    h.news = true;
    ASSERT_TRUE(
        h.run_until([&] { return std::exchange(h.news, false) && has_ended(state().status); }));
    taken_over = second != nullptr;
    moments += taken_over ? 1 : 0;
    EXPECT_EQ(state().status, RunStatus::kDone) << state().reason;
    EXPECT_LE(most_at_once, 1);
    EXPECT_EQ(h.cluster.points.size(), 1U);
    EXPECT_LE(h.cluster.total_resigns(), 1);
    for (const auto& node : h.cluster.nodes) {
      EXPECT_EQ(node.finished.contains(0) ? node.finished.at(0) : 0, 1) << node.name;
      EXPECT_EQ(node.scavenge_starts, 1) << node.name;
      EXPECT_EQ(node.priority, 0) << node.name;
    }
    second.reset();
  }
  EXPECT_GT(moments, 15);
}

}  // namespace
}  // namespace verger::controller
