#include "engine/scavenge/throttle.h"

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"

namespace verger::scavenge {
namespace {

using std::chrono::milliseconds;

TEST(Throttle, NeverRestsAtFullSpeed) {
  test::ManualClock clock;
  Throttle throttle(clock, 100);
  clock.advance_seconds(1000);
  EXPECT_EQ(throttle.rest_due(), milliseconds(0));
}

TEST(Throttle, RestsTheRestOfTheTime) {
  test::ManualClock clock;
  Throttle throttle(clock, 25);
  clock.advance_seconds(10);
  EXPECT_EQ(throttle.rest_due(), milliseconds(30'000)) << "10 s of 40 s are work";
  clock.advance_seconds(30);
  EXPECT_EQ(throttle.rest_due(), milliseconds(0));
  clock.advance_seconds(1);
  EXPECT_EQ(throttle.rest_due(), milliseconds(3000));
  EXPECT_EQ(throttle.rested(), milliseconds(33'000));
}

TEST(Throttle, LetsSmallDebtsAddUp) {
  test::ManualClock clock;
  Throttle throttle(clock, 90);
  clock.advance_seconds(8);
  EXPECT_EQ(throttle.rest_due(), milliseconds(0)) << "0.89 s are due";
  clock.advance_seconds(2);
  EXPECT_NEAR(static_cast<double>(throttle.rest_due().count()), 1111, 1);
}

}  // namespace
}  // namespace verger::scavenge
