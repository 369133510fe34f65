#include "controller/scheduler/scheduler.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/scheduler/next_times.h"
#include "tests/unit/controller_scheduler/schedules_case.h"

namespace verger::controller {
namespace {

using namespace testing;
using test::ControllerHarness;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kNightly = R"(name: nightly
clusters: [prod]
schedule: [{cron: "0 2 * * *", zone: UTC}]
windows: {allow: [{from: "02:00", to: "04:00", zone: UTC}]}
)";

TEST_F(Schedules, StartWhatIsDueInsideItsWindow) {
  apply(kNightly);
  until("2024-06-02 01:59");
  EXPECT_THAT(starts(), SizeIs(0));
  until("2024-06-02 03:30");
  ASSERT_THAT(starts(), SizeIs(1));
  EXPECT_THAT(starts()[0], ::testing::StartsWith("2024-06-02T02:0"));
  EXPECT_EQ(newest(), RunStatus::kDone);
  const auto run = h_.executor->runs("prod").front();
  EXPECT_EQ(run->started_by, "policy/nightly");
  EXPECT_EQ(h_.state(run->id).plan->policy.name, "nightly");
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "started");
  until("2024-06-03 01:59");
  EXPECT_THAT(starts(), SizeIs(1));
  until("2024-06-03 02:30");
  EXPECT_THAT(starts(), SizeIs(2));
}

TEST_F(Schedules, AWindowThatClosesStopsTheRunAndTheNextOneTakesItUp) {
  h_.cluster.scavenge_takes = std::chrono::minutes(50);  // three of them: more than two hours
  apply(kNightly);
  until("2024-06-02 04:02");
  for (const auto& node : h_.cluster.nodes) {
    EXPECT_FALSE(node.running.has_value()) << node.name;
    EXPECT_EQ(node.priority, 0) << node.name;
  }
  EXPECT_EQ(newest(), RunStatus::kWaiting);
  until("2024-06-03 03:59");
  EXPECT_THAT(starts(), SizeIs(1)) << "a cycle longer than its period is not started twice";
  EXPECT_EQ(newest(), RunStatus::kDone);
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "dropped");
  EXPECT_THAT(scheduler_->state("nightly", "prod").reason, HasSubstr("of policy nightly is"));
}

TEST_F(Schedules, ARunThatCannotResumeAtTheEndOfAPauseIsReportedAndTriedAgain) {
  apply(kNightly);
  until("2024-06-02 02:05");
  ASSERT_THAT(starts(), SizeIs(1));
  const auto run = h_.executor->runs("prod").front()->id;
  ASSERT_TRUE(h_.executor
                  ->pause_cluster("prod", "me", "patches", PauseMode::kNow,
                                  to_ticks(at("2024-06-02 02:30")))
                  .has_value());
  h_.cluster.node("n3").version = "24.10.0";
  until("2024-06-02 02:35");
  EXPECT_EQ(newest(), RunStatus::kPaused);
  EXPECT_EQ(h_.state(run).open_alerts(), 1U);
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("24.10.0")));
  h_.cluster.node("n3").version = "24.6.0";
  until("2024-06-02 03:58");
  EXPECT_EQ(newest(), RunStatus::kDone) << "without anybody";
  EXPECT_EQ(h_.state(run).open_alerts(), 0U);
}

TEST_F(Schedules, ARunThatAPersonPausedMeanwhileDoesNotResumeWithItsCluster) {
  apply(kNightly);
  until("2024-06-02 02:05");
  const auto run = h_.executor->runs("prod").front()->id;
  ASSERT_TRUE(h_.executor
                  ->pause_cluster("prod", "me", "patches", PauseMode::kNow,
                                  to_ticks(at("2024-06-02 02:30")))
                  .has_value());
  until("2024-06-02 02:10");
  ASSERT_TRUE(h_.executor->pause(run, "ann", "not tonight").has_value());
  until("2024-06-02 03:30");
  EXPECT_EQ(newest(), RunStatus::kPaused);
}

TEST_F(Schedules, ScheduleTimePassesWhileTheControllerIsDown) {
  apply(kNightly);
  until("2024-06-02 01:00");
  crash();
  h_.time.jump(std::chrono::hours(2));  // 03:00: still inside
  boot();
  until("2024-06-02 03:03");
  EXPECT_THAT(starts(), SizeIs(1));
  until("2024-06-02 23:00");
  crash();
  h_.time.jump(std::chrono::hours(10));  // 09:00: the opening has passed
  boot();
  until("2024-06-03 09:05");
  EXPECT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "dropped");
}

TEST_F(Schedules, ACrashRightAfterTheStartStartsNothingTwice) {
  apply(kNightly);
  ASSERT_TRUE(
      h_.run_until([this] { return !h_.executor->runs("prod").empty(); }, std::chrono::hours(3)));
  crash();
  boot();
  until("2024-06-02 03:30");
  EXPECT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "started");
  EXPECT_EQ(scheduler_->state("nightly", "prod").run, h_.executor->runs("prod").front()->id);
}

TEST_F(Schedules, WaitForThePlanToBePossible) {
  h_.cluster.node("n3").up = false;
  apply(kNightly);
  until("2024-06-02 02:10");
  EXPECT_THAT(starts(), SizeIs(0));
  EXPECT_THAT(scheduler_->state("nightly", "prod").waiting, HasSubstr("n3: http"));
  h_.cluster.node("n3").up = true;
  until("2024-06-02 02:20");
  EXPECT_THAT(starts(), SizeIs(1));
}

TEST_F(Schedules, AMoveOfTheLeaderMayNeedAPerson) {
  apply(std::string(kNightly) + "resign: needs-approval\n");
  until("2024-06-02 02:10");
  EXPECT_THAT(starts(), SizeIs(0));
  const auto state = scheduler_->state("nightly", "prod");
  EXPECT_EQ(state.outcome, "needs-approval");
  ASSERT_TRUE(h_.wait_for(h_.executor->apply(state.plan, "me")).has_value());
  until("2024-06-02 03:30");
  EXPECT_EQ(newest(), RunStatus::kDone);
}

TEST_F(Schedules, PolicyChangedMidRun) {
  apply(kNightly);
  until("2024-06-02 02:05");
  ASSERT_THAT(starts(), SizeIs(1));
  const auto hash = h_.executor->runs("prod").front()->plan;
  // A freeze, from now on: it holds at once; the plan that runs stays what it was.
  apply(R"(name: nightly
clusters: [prod]
schedule: [{cron: "0 2 * * *", zone: UTC}]
windows:
  allow: [{from: "02:00", to: "04:00", zone: UTC}]
  deny: [{name: freeze, from: "2024-06-02", to: "2024-06-04", zone: UTC}]
parameters: {threads: 4}
)");
  until("2024-06-02 03:59");
  EXPECT_EQ(newest(), RunStatus::kWaiting);
  EXPECT_THAT(h_.executor->active_runs("prod").front()->reason, HasSubstr("freeze"));
  for (const auto& node : h_.cluster.nodes) {
    EXPECT_FALSE(node.running.has_value());
  }
  until("2024-06-04 03:59");
  EXPECT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(newest(), RunStatus::kDone);
  EXPECT_EQ(h_.executor->runs("prod").front()->plan, hash);
}

TEST_F(Schedules, DstRepeatsTheDueHourAndNothingWorksOutsideTheWindow) {
  // Over the night of 27 October 2024, in which Berlin has 02:30 twice.
  h_.cluster.scavenge_takes = std::chrono::minutes(50);
  crash();
  h_.time.jump(at("2024-10-25 12:00") - at("2024-06-02 00:00"));
  boot();
  const auto berlin = zone("Europe/Berlin");
  int outside = 0;
  h_.cluster.acted = [&](const test::FakeNode&, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      const auto local = berlin.to_local(to_instant(h_.time.now()));
      const auto hour =
          (local - std::chrono::floor<std::chrono::days>(local)) / std::chrono::hours(1);
      outside += hour >= 2 && hour < 4 ? 0 : 1;
    }
  };
  apply(R"(name: nightly
clusters: [prod]
schedule: [{cron: "30 2 * * *", zone: Europe/Berlin}]
windows: {allow: [{from: "02:00", to: "04:00", zone: Europe/Berlin}]}
)");
  until("2024-10-28 03:30");
  // 26: 02:30 CEST. 27: the run of the 26th still works at the first 02:30, and the second is none.
  const auto begun = starts();
  ASSERT_GE(begun.size(), 2U);
  EXPECT_THAT(begun[0], ::testing::StartsWith("2024-10-26T00:3"));
  for (const auto& start : begun) {
    EXPECT_THAT(start, ::testing::Not(::testing::StartsWith("2024-10-27T01:3")))
        << "the repeated hour is not due again";
  }
  EXPECT_EQ(outside, 0);
}

TEST_F(Schedules, PeakHoursOfAnyPolicyHoldForAPersonsRunToo) {
  apply(R"(name: peak
clusters: [prod]
windows: {deny: [{name: peak, from: "00:30", to: "05:00", zone: UTC}]}
)");
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  until("2024-06-02 00:33");
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("\"peak of policy peak\""));
  until("2024-06-02 06:00");
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
}

TEST_F(Schedules, APauseOfTheClusterEndsByItselfAndItsRunResumes) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  until("2024-06-02 00:05");
  ASSERT_TRUE(
      h_.executor
          ->pause_cluster("prod", "me", "audit", PauseMode::kNow, to_ticks(at("2024-06-02 02:00")))
          .has_value());
  until("2024-06-02 01:59");
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
  crash();
  boot();
  EXPECT_TRUE(h_.registry->find("prod")->paused);
  until("2024-06-02 03:00");
  EXPECT_FALSE(h_.registry->find("prod")->paused);
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
}

TEST_F(Schedules, AClusterResumesOnlyTheRunThatPausedWithIt) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  until("2024-06-02 00:05");
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  until("2024-06-02 00:08");
  ASSERT_TRUE(
      h_.executor->pause_cluster("prod", "me", "", PauseMode::kPolicy, std::nullopt).has_value());
  const auto refused = h_.wait_for(h_.executor->resume(run, "me"));
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume_cluster("prod", "me")).has_value());
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
}

TEST_F(Schedules, TellTheNextOpeningsAndDueTimes) {
  apply(kNightly);
  const auto next = next_times(*book_, *h_.registry->find("prod"), at("2024-06-02 03:00"), 10);
  int opens = 0;
  int due = 0;
  for (const auto& each : next) {
    (each.kind == NextTime::Kind::kOpens ? opens : due) += 1;
  }
  EXPECT_EQ(opens, 10);
  EXPECT_EQ(due, 10);
  EXPECT_EQ(text_of(next[0].at), "2024-06-02 02:00") << "the opening that is under way";
  EXPECT_EQ(text_of(*next[0].until), "2024-06-02 04:00");
}

TEST_F(Schedules, APolicyIsKeptAndItsRevisionGuardsIt) {
  apply(kNightly);
  const auto first = book_->find("nightly").value();
  apply(std::string(kNightly) + "enabled: false\n");
  const auto late = book_->apply(first.policy, "other", first.revision);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kConflict);
  crash();
  boot();
  EXPECT_FALSE(book_->find("nightly").value().policy.enabled);
  until("2024-06-02 02:10");
  EXPECT_THAT(starts(), SizeIs(0));
  ASSERT_TRUE(book_->remove("nightly", "me").has_value());
  EXPECT_EQ(book_->find("nightly").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace verger::controller
