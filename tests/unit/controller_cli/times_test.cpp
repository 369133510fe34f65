#include "controller/cli/times.h"

#include <cstdlib>
#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"

namespace verger::cli {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class Until : public ::testing::Test {
 protected:
  Until() {
    ::setenv("TZ", "Europe/Berlin", 1);
    ::tzset();
  }
  ~Until() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static std::string until(const std::string& text) {
    const auto time = parse_until(text, parse_ticks("2026-07-22T14:30:00Z").value());
    return time ? format_ticks(*time) : time.error().message;
  }
};

TEST_F(Until, TakesALengthFromNow) {
  EXPECT_EQ(until("2h"), "2026-07-22T16:30:00Z");
  EXPECT_EQ(until("90m"), "2026-07-22T16:00:00Z");
  EXPECT_EQ(until("1d12h"), "2026-07-24T02:30:00Z");
}

TEST_F(Until, TakesATimeWithItsZone) {
  EXPECT_EQ(until("2026-07-23T06:00:00Z"), "2026-07-23T06:00:00Z");
  EXPECT_EQ(until("2026-07-23T06:00+05:30"), "2026-07-23T00:30:00Z");
  EXPECT_EQ(until("2026-07-23T06:00:00.25-0800"), "2026-07-23T14:00:00Z");
}

TEST_F(Until, TakesATimeOfThisMachine) {
  EXPECT_EQ(until("2026-07-23T06:00"), "2026-07-23T04:00:00Z") << "summer time";
  EXPECT_EQ(until("2026-12-23 06:00:30"), "2026-12-23T05:00:30Z");
  EXPECT_EQ(until("18:00"), "2026-07-22T16:00:00Z") << "today";
  EXPECT_EQ(until("06:00"), "2026-07-23T04:00:00Z") << "past today, so tomorrow";
}

TEST_F(Until, SaysWhatItTakes) {
  for (const auto* wrong : {"", "soon", "2x", "h", "25:00", "2026-02-31T06:00:00Z",
                            "2026-02-31T06:00", "2026-07-23T06:00:00+99:00", "06:00Z", "-2h"}) {
    SCOPED_TRACE(wrong);
    EXPECT_THAT(until(wrong), HasSubstr("it takes a length such as 2h"));
  }
}

TEST(Times, CarryTheirZone) {
  const nlohmann::json object{{"at", "2026-11-22T14:32:07.1234567Z"}, {"none", nullptr}};
  EXPECT_EQ(time_of(object, "at"), "2026-11-22T14:32:07Z");
  EXPECT_EQ(time_of(object, "none"), "-");
}

TEST(Times, LengthsReadAsPeopleSayThem) {
  EXPECT_EQ(length_text(seconds(0)), "0 s");
  EXPECT_EQ(length_text(seconds(95)), "95 s");
  EXPECT_EQ(length_text(seconds(180)), "3 min");
  EXPECT_EQ(length_text(seconds(7'200)), "2 h");
  EXPECT_EQ(length_text(seconds(7'500)), "2 h 5 min");
  EXPECT_EQ(length_text(seconds(3 * 86'400 + 3'600)), "3 d 1 h");
  EXPECT_EQ(range_text(seconds(40), seconds(200)), "40 s to 3 min");
  EXPECT_EQ(range_text(seconds(180), seconds(182)), "3 min");
}

}  // namespace
}  // namespace verger::cli
