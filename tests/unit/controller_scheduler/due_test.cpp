#include "controller/scheduler/due.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_scheduler/times.h"

namespace verger::controller {
namespace {

using namespace testing;
using Action = DueDecision::Action;
using ::testing::HasSubstr;

SchedulePolicy daily(const std::string& catch_up) {
  // Due at 22:00, open from 22:00 to 02:00.
  return parse_schedule_policy(
             "name: a\nclusters: [b]\nschedule: [{cron: '0 22 * * *', zone: UTC}]\n"
             "windows: {allow: [{from: '22:00', to: '02:00', zone: UTC}]}\n"
             "catch_up: " +
             catch_up + "\n")
      .value();
}

DueDecision decide(const std::string& catch_up, const std::string& handled, const std::string& now,
                   DueBlock block = {}) {
  const auto policy = daily(catch_up);
  return decide_due(policy, policy.windows, at(handled), at(now), block);
}

TEST(Due, StartsOnTimeUnderEachRule) {
  for (const auto* rule : {"run", "skip", "run-if-in-window"}) {
    const auto decision = decide(rule, "2024-06-01 22:00", "2024-06-02 22:00");
    EXPECT_EQ(decision.action, Action::kStart) << rule << decision.reason;
    EXPECT_EQ(text_of(decision.due), "2024-06-02 22:00");
    EXPECT_EQ(decide(rule, "2024-06-02 22:00", "2024-06-02 22:01").action, Action::kNothing);
  }
}

TEST(Due, ScheduleTimePassesWhileTheControllerIsDown) {
  EXPECT_EQ(decide("run", "2024-06-01 22:00", "2024-06-02 23:30").action, Action::kStart);
  EXPECT_EQ(decide("run-if-in-window", "2024-06-01 22:00", "2024-06-02 23:30").action,
            Action::kStart);
  const auto skipped = decide("skip", "2024-06-01 22:00", "2024-06-02 23:30");
  EXPECT_EQ(skipped.action, Action::kDrop);
  EXPECT_EQ(skipped.reason, "1 h 30 min late; catch_up is skip");

  const auto waits = decide("run", "2024-06-01 22:00", "2024-06-03 09:00");
  EXPECT_EQ(waits.action, Action::kWait);
  EXPECT_EQ(text_of(*waits.wake), "2024-06-03 22:00");
  const auto dropped = decide("run-if-in-window", "2024-06-01 22:00", "2024-06-03 09:00");
  EXPECT_EQ(dropped.action, Action::kDrop);
  EXPECT_THAT(dropped.reason, HasSubstr("its opening ended at Mon 2024-06-03 02:00 UTC"));
}

TEST(Due, AnEventIsCaughtUpWhateverTheRule) {
  for (const auto* rule : {"run", "skip", "run-if-in-window"}) {
    const auto policy = daily(rule);
    const auto decided = [&](const std::string& handled, const std::string& now,
                             const std::string& event) {
      return decide_due(policy, policy.windows, at(handled), at(now), {}, at(event));
    };
    const auto closed = decided("2024-06-02 22:00", "2024-06-03 09:00", "2024-06-03 08:00");
    EXPECT_EQ(closed.action, Action::kWait) << rule;
    EXPECT_EQ(text_of(closed.due), "2024-06-03 08:00");
    EXPECT_EQ(text_of(*closed.wake), "2024-06-03 22:00");
    const auto open = decided("2024-06-02 22:00", "2024-06-02 23:30", "2024-06-02 23:00");
    EXPECT_EQ(open.action, Action::kStart) << rule << open.reason;
    EXPECT_EQ(text_of(open.due), "2024-06-02 23:00");
    // One that was settled, or is older than the due time that comes with it.
    EXPECT_EQ(decided("2024-06-02 23:00", "2024-06-02 23:30", "2024-06-02 23:00").action,
              Action::kNothing);
    EXPECT_EQ(text_of(decided("2024-06-01 22:00", "2024-06-02 22:01", "2024-06-02 09:00").due),
              "2024-06-02 22:00");
  }
}

TEST(Due, SeveralMissedTimesAreOne) {
  const auto decision = decide("run", "2024-05-20 22:00", "2024-06-02 22:30");
  EXPECT_EQ(decision.action, Action::kStart);
  EXPECT_EQ(text_of(decision.due), "2024-06-02 22:00");
}

TEST(Due, CycleLongerThanItsPeriodIsNotStartedTwice) {
  for (const auto* rule : {"run", "skip", "run-if-in-window"}) {
    const auto decision = decide(rule, "2024-06-01 22:00", "2024-06-02 22:00",
                                 {.reason = "run 1 is running", .own_run_at_work = true});
    EXPECT_EQ(decision.action, Action::kDrop) << rule;
    EXPECT_EQ(decision.reason, "run 1 is running");
  }
}

TEST(Due, WaitsForWhatIsInTheWayAsLongAsTheRuleAllows) {
  const DueBlock other{.reason = "cluster b is paused", .own_run_at_work = false};
  EXPECT_EQ(decide("run", "2024-06-01 22:00", "2024-06-02 23:00", other).action, Action::kWait);
  EXPECT_EQ(decide("run-if-in-window", "2024-06-01 22:00", "2024-06-02 23:00", other).action,
            Action::kWait);
  EXPECT_EQ(decide("skip", "2024-06-01 22:00", "2024-06-02 22:04", other).action, Action::kWait);
  EXPECT_EQ(decide("skip", "2024-06-01 22:00", "2024-06-02 22:06", other).action, Action::kDrop);
  EXPECT_EQ(decide("run-if-in-window", "2024-06-01 22:00", "2024-06-03 02:00", other).action,
            Action::kDrop);
}

TEST(Due, AClockThatJumpsBackStartsNothingTwice) {
  EXPECT_EQ(decide("run", "2024-06-02 22:00", "2024-06-02 21:00").action, Action::kNothing);
  EXPECT_EQ(decide("run", "2024-06-02 22:00", "2024-06-02 22:00").action, Action::kNothing);
}

std::string too_late(const std::string& catch_up, const std::string& now,
                     const std::string& needed_at, const std::string& deadline) {
  const auto policy = daily(catch_up);
  return why_too_late(policy, policy.windows,
                      {.needed_at = to_ticks(at(needed_at)),
                       .deadline = to_ticks(at(deadline)),
                       .ends = "the certificate of n1"},
                      at(now));
}

TEST(Due, ARunAfterTheDeadlineIsKnownAtOnce) {
  EXPECT_EQ(too_late("skip", "2024-06-02 09:00", "2024-06-10 12:00", "2024-06-11 12:00"), "");
  EXPECT_EQ(too_late("skip", "2024-06-02 09:00", "2024-06-01 00:00", "2024-06-02 22:01"), "")
      << "needed already, and the next time is early enough";
  EXPECT_THAT(too_late("skip", "2024-06-02 09:00", "2024-06-10 22:30", "2024-06-11 21:00"),
              HasSubstr("the certificate of n1 ends at Tue 2024-06-11 21:00 UTC, and the next run "
                        "that needs it can start at Tue 2024-06-11 22:00 UTC, which is later"));
  EXPECT_THAT(too_late("skip", "2024-06-02 09:00", "2024-05-01 00:00", "2024-06-01 00:00"),
              HasSubstr("ended at Sat 2024-06-01 00:00 UTC, and no run has renewed it"));
}

TEST(Due, ADueTimeOutsideTheWindowsIsARunOnlyWhereItIsCaughtUp) {
  for (const auto* rule : {"run", "run-if-in-window"}) {
    const auto policy =
        parse_schedule_policy(
            std::string("name: a\nclusters: [b]\nschedule: [{cron: '0 12 * * *', zone: UTC}]\n"
                        "windows: {allow: [{from: '22:00', to: '02:00', zone: UTC}]}\ncatch_up: ") +
            rule + "\n")
            .value();
    const auto why = why_too_late(policy, policy.windows,
                                  {.deadline = to_ticks(at("2024-06-02 22:30")), .ends = "it"},
                                  at("2024-06-02 09:00"));
    EXPECT_EQ(why.empty(), std::string_view(rule) == "run") << why;
  }
}

}  // namespace
}  // namespace verger::controller
