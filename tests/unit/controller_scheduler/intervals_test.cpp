#include <gtest/gtest.h>

#include "engine/base/random.h"
#include "tests/unit/controller_scheduler/times.h"

namespace verger::controller {
namespace {

Instant s(std::int64_t seconds) { return Instant(std::chrono::seconds(seconds)); }

TEST(Intervals, JoinWhatOverlapsOrTouches) {
  IntervalSet set;
  set.add({s(10), s(20)});
  set.add({s(30), s(40)});
  set.add({s(20), s(25)});
  EXPECT_EQ(set, IntervalSet({{s(10), s(25)}, {s(30), s(40)}}));
  set.add({s(24), s(31)});
  EXPECT_EQ(set, IntervalSet({{s(10), s(40)}}));
  set.add({s(50), s(50)});
  EXPECT_EQ(set.intervals().size(), 1U);
}

TEST(Intervals, AreHalfOpen) {
  const IntervalSet set({{s(10), s(20)}});
  EXPECT_FALSE(set.contains(s(9)));
  EXPECT_TRUE(set.contains(s(10)));
  EXPECT_TRUE(set.contains(s(19)));
  EXPECT_FALSE(set.contains(s(20)));
  EXPECT_EQ(set.next(s(9))->from, s(10));
  EXPECT_FALSE(set.next(s(10)).has_value());
}

/// Against the plainest way: one bit for each second.
TEST(Intervals, AgreeWithSecondsOneByOne) {
  SeededRandom random(11);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::array<bool, 64> a{};
    std::array<bool, 64> b{};
    IntervalSet set_a;
    IntervalSet set_b;
    for (int i = 0; i < 6; ++i) {
      const auto from = static_cast<std::int64_t>(random.below(60));
      const auto to = from + static_cast<std::int64_t>(random.below(12));
      auto& bits = i % 2 == 0 ? a : b;
      (i % 2 == 0 ? set_a : set_b).add({s(from), s(std::min<std::int64_t>(to, 64))});
      for (auto at = from; at < to && at < 64; ++at) {
        bits[static_cast<std::size_t>(at)] = true;
      }
    }
    const auto left = set_a.minus(set_b);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const auto instant = s(static_cast<std::int64_t>(i));
      EXPECT_EQ(set_a.contains(instant), a[i]);
      EXPECT_EQ(left.contains(instant), a[i] && !b[i]);
      count += a[i] && !b[i] ? 1 : 0;
    }
    EXPECT_EQ(left.total().count(), count);
    for (std::size_t i = 1; i < left.intervals().size(); ++i) {
      EXPECT_LT(left.intervals()[i - 1].to, left.intervals()[i].from);
    }
  }
}

}  // namespace
}  // namespace verger::controller
