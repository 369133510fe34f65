// The controller dies at each place of a change of the number of voters: the next one ends it or
// undoes all of it, and at no time are two leaders possible.
#include <fmt/format.h>
#include <utility>

#include "tests/unit/controller_operations/resize_run.h"

namespace verger::controller {
namespace {

struct Way {
  int voters;
  bool undone;
};

/// Dies after the nth event or order to an agent, then lives on. False: it never came to that.
class OneResizeCrash : public test::ResizeRun {
 public:
  explicit OneResizeCrash(Way way) : ResizeRun(way.voters), way_(way) {
    h_.cluster.sizes_differ_apart = true;
  }
  void TestBody() override {}
  bool dies_after(std::int64_t nth, bool deeds) {
    begin();
    if (way_.undone) {
      size("n1").failing = 1'000;  // the last one
    }
    std::int64_t count = 0;
    if (deeds) {
      h_.cluster.acted = [&count](const test::FakeNode&, const http::Request& request) {
        count += request.target.starts_with("/agent/v1/operations") ? 1 : 0;
      };
    }
    const auto run = start(way_.voters == 3 ? to_five() : to_three());
    const auto first = h_.journal->last_sequence()->value();
    bool crashed = false;
    h_.news = true;
    h_.run_until(
        [&] {
          const bool news = std::exchange(h_.news, false);
          if (!deeds && news) {
            count = h_.journal->last_sequence()->value() - first;
          }
          crashed = crashed || count >= nth;
          return crashed || (news && has_ended(h_.state(run).status));
        },
        std::chrono::hours(1));
    if (crashed) {
      h_.crash();
      h_.boot();
    }
    if (way_.undone) {
      expect_as_before(run, way_.voters);
    } else if (way_.voters == 3) {
      expect_grown(run);
    } else {
      expect_shrunk(run);
    }
    return crashed;
  }

 private:
  Way way_;
};

/// After each order, or each second event: between two of those, something is done at most once.
int resize_dies_at_each(bool deeds, Way way) {
  for (std::int64_t nth = 1;; nth += deeds ? 1 : 2) {
    SCOPED_TRACE(fmt::format("after number {}", nth));
    OneResizeCrash life(way);
    const bool died = life.dies_after(nth, deeds);
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!died) {
      return static_cast<int>(nth) - 1;
    }
  }
}

TEST(ResizeCrashes, AfterEachJournaledEventOfAGrowthTheRunEnds) {
  EXPECT_GT(resize_dies_at_each(/*deeds=*/false, {.voters = 3, .undone = false}), 40);
}
TEST(ResizeCrashes, AfterEachOrderOfAGrowthTheRunEnds) {
  EXPECT_GT(resize_dies_at_each(/*deeds=*/true, {.voters = 3, .undone = false}), 8);
}
TEST(ResizeCrashes, AfterEachJournaledEventOfAGrowthThatMustGoBackAllIsAsBefore) {
  EXPECT_GT(resize_dies_at_each(/*deeds=*/false, {.voters = 3, .undone = true}), 40);
}
TEST(ResizeCrashes, AfterEachJournaledEventOfAReductionTheRunEnds) {
  EXPECT_GT(resize_dies_at_each(/*deeds=*/false, {.voters = 5, .undone = false}), 30);
}
TEST(ResizeCrashes, AfterEachJournaledEventOfAReductionThatMustGoBackAllIsAsBefore) {
  EXPECT_GT(resize_dies_at_each(/*deeds=*/false, {.voters = 5, .undone = true}), 30);
}
TEST(ResizeCrashes, AfterEachOrderOfAReductionThatMustGoBackAllIsAsBefore) {
  EXPECT_GT(resize_dies_at_each(/*deeds=*/true, {.voters = 5, .undone = true}), 8);
}

}  // namespace
}  // namespace verger::controller
