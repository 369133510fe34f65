#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_scheduler/times.h"

// Europe/Berlin 2024: 31 March 02:00 CET -> 03:00 CEST (01:00 UTC);
//                     27 October 03:00 CEST -> 02:00 CET (01:00 UTC).
// America/New_York 2024: 10 March 02:00 -> 03:00 (07:00 UTC); 3 November 02:00 -> 01:00 (06:00
// UTC). Australia/Lord_Howe moves by half an hour: 7 April 2024 02:00 -> 01:30 (6 April 15:00 UTC);
//                     6 October 2024 02:00 -> 02:30 (5 October 15:30 UTC).
namespace verger::controller {
namespace {

using namespace testing;
using std::chrono::hours;
using std::chrono::minutes;

Window weekly(const std::string& zone_name, minutes from, minutes to) {
  Window out;
  out.zone = zone(zone_name);
  out.weekdays.set();
  out.from = from;
  out.to = to;
  return out;
}

std::string instants(const Window& window, const std::string& from, const std::string& to) {
  IntervalSet set;
  window.add_to(set, {at(from), at(to)});
  return text_of(set);
}

std::vector<std::string> due(const std::string& cron, const std::string& zone_name,
                             const std::string& from, int count) {
  const auto schedule = CronSchedule::parse(cron, zone(zone_name)).value();
  std::vector<std::string> out;
  auto instant = at(from);
  for (int i = 0; i < count; ++i) {
    instant = schedule.next_after(instant).value();
    out.push_back(text_of(instant));
  }
  return out;
}

TEST(DaylightSaving, AWindowAcrossAGapIsShorterByIt) {
  EXPECT_EQ(
      instants(weekly("Europe/Berlin", hours(1), hours(5)), "2024-03-30 12:00", "2024-03-31 12:00"),
      "2024-03-31 00:00..2024-03-31 03:00");  // three hours
}

TEST(DaylightSaving, AWindowInsideAGapIsNotThatDay) {
  EXPECT_EQ(instants(weekly("Europe/Berlin", hours(2) + minutes(15), hours(2) + minutes(45)),
                     "2024-03-30 00:00", "2024-04-02 00:00"),
            "2024-03-30 01:15..2024-03-30 01:45 | 2024-04-01 00:15..2024-04-01 00:45");
}

TEST(DaylightSaving, AWindowThatBeginsInAGapBeginsBehindIt) {
  EXPECT_EQ(instants(weekly("Europe/Berlin", hours(2) + minutes(30), hours(4)), "2024-03-31 00:00",
                     "2024-03-31 12:00"),
            "2024-03-31 01:00..2024-03-31 02:00");
}

TEST(DaylightSaving, AWindowAcrossARepeatIsLongerByIt) {
  EXPECT_EQ(
      instants(weekly("Europe/Berlin", hours(1), hours(5)), "2024-10-26 12:00", "2024-10-27 12:00"),
      "2024-10-26 23:00..2024-10-27 04:00");  // five hours
}

TEST(DaylightSaving, AWindowInsideARepeatedHourComesTwice) {
  EXPECT_EQ(instants(weekly("Europe/Berlin", hours(2) + minutes(15), hours(2) + minutes(45)),
                     "2024-10-27 00:00", "2024-10-27 12:00"),
            "2024-10-27 00:15..2024-10-27 00:45 | 2024-10-27 01:15..2024-10-27 01:45");
}

TEST(DaylightSaving, AmericaAndHalfHoursTooAndCrossingMidnight) {
  EXPECT_EQ(instants(weekly("America/New_York", hours(23), hours(3)), "2024-03-09 12:00",
                     "2024-03-10 12:00"),
            "2024-03-10 04:00..2024-03-10 07:00");
  EXPECT_EQ(instants(weekly("America/New_York", hours(23), hours(3)), "2024-11-02 12:00",
                     "2024-11-03 12:00"),
            "2024-11-03 03:00..2024-11-03 08:00");
  EXPECT_EQ(instants(weekly("Australia/Lord_Howe", hours(1), hours(3)), "2024-04-06 00:00",
                     "2024-04-07 00:00"),
            "2024-04-06 14:00..2024-04-06 16:30");
  EXPECT_EQ(instants(weekly("Australia/Lord_Howe", hours(1), hours(3)), "2024-10-05 00:00",
                     "2024-10-06 00:00"),
            "2024-10-05 14:30..2024-10-05 16:00");
}

TEST(DaylightSaving, AScheduleInAGapIsDueRightBehindIt) {
  EXPECT_THAT(due("30 2 * * *", "Europe/Berlin", "2024-03-30 00:00", 3),
              ::testing::ElementsAre("2024-03-30 01:30", "2024-03-31 01:00", "2024-04-01 00:30"));
  EXPECT_THAT(due("15,45 2 * * *", "Europe/Berlin", "2024-03-30 12:00", 2),
              ::testing::ElementsAre("2024-03-31 01:00", "2024-04-01 00:15"));
  EXPECT_THAT(due("10 2 * * *", "Australia/Lord_Howe", "2024-10-05 00:00", 2),
              ::testing::ElementsAre("2024-10-05 15:30", "2024-10-06 15:10"));
}

TEST(DaylightSaving, DstRepeatsTheDueHour) {
  EXPECT_THAT(due("30 2 * * *", "Europe/Berlin", "2024-10-26 12:00", 2),
              ::testing::ElementsAre("2024-10-27 00:30", "2024-10-28 01:30"));
  EXPECT_THAT(due("30 1 * * *", "America/New_York", "2024-11-02 12:00", 2),
              ::testing::ElementsAre("2024-11-03 05:30", "2024-11-04 06:30"));
}

TEST(DaylightSaving, OverThirtyYearsEachDayIsDueOnceAndTimeOnlyGoesForward) {
  for (const auto* name : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                           "Asia/Tehran", "America/Sao_Paulo", "UTC"}) {
    SCOPED_TRACE(name);
    const auto schedule = CronSchedule::parse("30 2 * * *", zone(name)).value();
    auto instant = at("2005-01-01 12:00");
    const auto end = at("2035-01-01 12:00");
    int count = 0;
    for (;;) {
      const auto next = schedule.next_after(instant).value();
      if (next >= end) {
        break;
      }
      ASSERT_GE(next - instant, hours(count == 0 ? 1 : 22));
      ASSERT_LE(next - instant, hours(27));
      instant = next;
      ++count;
    }
    EXPECT_EQ(count, 10'957);  // days of thirty years
  }
}

}  // namespace
}  // namespace verger::controller
