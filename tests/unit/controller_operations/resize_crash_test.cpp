// The controller dies at each place of a change of the number of voters: the next one ends it or
// undoes all of it, and at no time are two leaders possible.

#include "tests/unit/controller_operations/crashes.h"
#include "tests/unit/controller_operations/resize_run.h"

namespace verger::controller {
namespace {

using test::CrashAfter;

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
  bool dies_after(CrashAfter after, std::int64_t nth) {
    begin();
    if (way_.undone) {
      size("n1").failing = 1'000;  // the last one
    }
    const auto [run, crashed] = test::live_with_crash(
        h_, after, nth, [&] { return start(way_.voters == 3 ? to_five() : to_three()); });
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

int resize_dies_at_each(CrashAfter after, Way way) {
  return test::crash_at_each(test::places_apart(after), [&](std::int64_t nth) {
    OneResizeCrash life(way);
    return life.dies_after(after, nth);
  });
}

TEST(ResizeCrashes, AfterEachJournaledEventOfAGrowthTheRunEnds) {
  EXPECT_GT(resize_dies_at_each(CrashAfter::kEvents, {.voters = 3, .undone = false}), 40);
}
TEST(ResizeCrashes, AfterEachOrderOfAGrowthTheRunEnds) {
  EXPECT_GT(resize_dies_at_each(CrashAfter::kOrders, {.voters = 3, .undone = false}), 8);
}
TEST(ResizeCrashes, AfterEachJournaledEventOfAGrowthThatMustGoBackAllIsAsBefore) {
  EXPECT_GT(resize_dies_at_each(CrashAfter::kEvents, {.voters = 3, .undone = true}), 40);
}
TEST(ResizeCrashes, AfterEachJournaledEventOfAReductionTheRunEnds) {
  EXPECT_GT(resize_dies_at_each(CrashAfter::kEvents, {.voters = 5, .undone = false}), 30);
}
TEST(ResizeCrashes, AfterEachJournaledEventOfAReductionThatMustGoBackAllIsAsBefore) {
  EXPECT_GT(resize_dies_at_each(CrashAfter::kEvents, {.voters = 5, .undone = true}), 30);
}
TEST(ResizeCrashes, AfterEachOrderOfAReductionThatMustGoBackAllIsAsBefore) {
  EXPECT_GT(resize_dies_at_each(CrashAfter::kOrders, {.voters = 5, .undone = true}), 8);
}

}  // namespace
}  // namespace verger::controller
