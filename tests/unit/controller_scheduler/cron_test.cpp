#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_scheduler/times.h"

namespace verger::controller {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::string next(const std::string& cron, const std::string& after) {
  return text_of(CronSchedule::parse(cron, Zone()).value().next_after(at(after)).value());
}
std::string error(const std::string& cron) {
  const auto parsed = CronSchedule::parse(cron, Zone());
  return parsed ? "" : parsed.error().message;
}

TEST(Cron, FindsTheNextTime) {
  EXPECT_EQ(next("*/15 * * * *", "2024-06-02 10:07"), "2024-06-02 10:15");
  EXPECT_EQ(next("0 22 * * sat", "2024-06-02 00:00"), "2024-06-08 22:00");
  EXPECT_EQ(next("0 22 * * 6", "2024-06-08 22:00"), "2024-06-15 22:00");
  EXPECT_EQ(next("5 4 1-7/2 jan,Mar *", "2024-01-07 04:05"), "2024-03-01 04:05");
  EXPECT_EQ(next("0 0 29 2 *", "2024-03-01 00:00"), "2028-02-29 00:00");
  EXPECT_EQ(next("@weekly", "2024-06-05 00:00"), "2024-06-09 00:00");
  EXPECT_EQ(next("0 0 * * 7", "2024-06-05 00:00"), "2024-06-09 00:00");
}

TEST(Cron, EitherDayWillDoWhereBothAreGiven) {
  EXPECT_EQ(next("0 0 13 * fri", "2024-06-02 00:00"), "2024-06-07 00:00");
  EXPECT_EQ(next("0 0 13 * fri", "2024-06-07 00:00"), "2024-06-13 00:00");
}

TEST(Cron, SaysWhatIsWrong) {
  EXPECT_THAT(error("* * * *"), HasSubstr("has 4 fields"));
  EXPECT_THAT(error("61 * * * *"), HasSubstr("field minute is \"61\": it takes 0 to 59"));
  EXPECT_THAT(error("0 0 * * foo"), HasSubstr("field weekday"));
  EXPECT_THAT(error("0 5-3 * * *"), HasSubstr("backwards"));
  EXPECT_THAT(error("*/0 * * * *"), HasSubstr("step"));
  EXPECT_THAT(error("0 0 30 2 *"), HasSubstr("never comes"));
}

}  // namespace
}  // namespace verger::controller
