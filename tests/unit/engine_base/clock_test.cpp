#include "engine/base/clock.h"

#include <gtest/gtest.h>
#include <limits>

namespace verger {
namespace {

TEST(Ticks, AreWrittenAsTheServerWritesThem) {
  EXPECT_EQ(format_ticks(Ticks(0)), "0001-01-01T00:00:00Z");
  EXPECT_EQ(format_ticks(kUnixEpoch), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_ticks(kMaxTicks), "9999-12-31T23:59:59.9999999Z");
  EXPECT_EQ(format_ticks(Ticks(kUnixEpoch.value() + 12'300'000)), "1970-01-01T00:00:01.23Z");
  // 2024-02-29T12:34:56.7 UTC is 1709210096.7 in Unix time.
  EXPECT_EQ(format_ticks(Ticks(kUnixEpoch.value() + 17'092'100'967'000'000)),
            "2024-02-29T12:34:56.7Z");
}

TEST(Ticks, ThatAreNoTimeSaySo) {
  EXPECT_EQ(format_ticks(Ticks(-1)), "(no valid time: -1 ticks)");
  EXPECT_EQ(format_ticks(Ticks(kMaxTicks.value() + 1)),
            "(no valid time: 3155378976000000000 ticks)");
}

TEST(Ticks, AreReadWithAndWithoutZoneAndFraction) {
  EXPECT_EQ(parse_ticks("1970-01-01T00:00:00Z"), kUnixEpoch);
  EXPECT_EQ(parse_ticks("1970-01-01T00:00:00"), kUnixEpoch);
  EXPECT_EQ(parse_ticks("1970-01-01T00:00:00+00:00"), kUnixEpoch);
  EXPECT_EQ(parse_ticks("1970-01-01T00:00:00.0000000Z"), kUnixEpoch);
  EXPECT_EQ(parse_ticks("1970-01-01T00:00:00.0000001Z"), Ticks(kUnixEpoch.value() + 1));
  EXPECT_EQ(parse_ticks("1970-01-01T00:00:00.5"), Ticks(kUnixEpoch.value() + 5'000'000));
  EXPECT_EQ(parse_ticks("9999-12-31T23:59:59.9999999Z"), kMaxTicks);
}

TEST(Ticks, AreRefusedWhenTheTextIsNoTime) {
  for (const auto* text :
       {"", "now", "1970-01-01", "1970-01-01 00:00:00", "0000-01-01T00:00:00Z",
        "1970-13-01T00:00:00Z", "1970-00-01T00:00:00Z", "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z", "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z",
        "1970-01-01T00:00:60Z", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00.12345678Z",
        "1970-01-01T00:00:00+01:00", "1970-01-01T00:00:00Zz", "-970-01-01T00:00:00Z"}) {
    SCOPED_TRACE(text);
    const auto ticks = parse_ticks(text);
    ASSERT_FALSE(ticks);
    EXPECT_EQ(ticks.error().code, Errc::kInvalidArgument);
  }
}

TEST(Ticks, OfTheFirstAndLastDayOfEachMonthSurviveTheRoundTrip) {
  int days = 0;
  constexpr std::int64_t kDay = 86'400 * kTicksPerSecond;
  std::string previous;
  for (std::int64_t ticks = 0; ticks <= kMaxTicks.value(); ticks += kDay * 27) {
    const auto text = format_ticks(Ticks(ticks + ticks % 997));
    ASSERT_EQ(parse_ticks(text), Ticks(ticks + ticks % 997)) << text;
    ASSERT_LT(previous.substr(0, 10), text.substr(0, 10));
    previous = text;
    ++days;
  }
  EXPECT_EQ(days, 3'652'059 / 27 + 1);  // days from 0001-01-01 to 9999-12-31
}

TEST(Duration, IsWrittenAsTheServerWritesIt) {
  EXPECT_EQ(format_duration(0), "00:00:00");
  EXPECT_EQ(format_duration(12'345'678), "00:00:01.2345678");
  EXPECT_EQ(format_duration(5'000'000), "00:00:00.5000000");
  EXPECT_EQ(format_duration((((26 * 60) + 3) * 60 + 4) * kTicksPerSecond), "1.02:03:04");
  EXPECT_EQ(format_duration(-kTicksPerSecond), "-00:00:01");
  EXPECT_EQ(format_duration(std::numeric_limits<std::int64_t>::min()),
            "-10675199.02:48:05.4775808");
}

TEST(SystemClock, IsInThisCenturyAndNeverGoesBack) {
  EXPECT_GT(system_clock().now(), *parse_ticks("2024-01-01T00:00:00Z"));
  EXPECT_LT(system_clock().now(), *parse_ticks("2124-01-01T00:00:00Z"));
  const auto before = system_clock().monotonic();
  EXPECT_GE(system_clock().monotonic(), before);
}

}  // namespace
}  // namespace verger
