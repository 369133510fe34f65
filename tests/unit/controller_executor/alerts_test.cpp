// What a run reports of what holds it up: the reason of a step, and alerts until their cause is
// over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/intents_fixture.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Intents;

TEST_F(Intents, AnAlertIsClearedOnceItsCauseIsOver) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  const auto away = [this](bool yes) {
    h_.cluster.node("n3").up = !yes;
    h_.cluster.node("n3").agent_up = !yes;
  };
  away(true);
  h_.run_until([] { return false; }, std::chrono::minutes(20));
  ASSERT_THAT(h_.alerts(run), Contains(HasSubstr("n3 has not answered")));
  ASSERT_THAT(h_.alerts(run), Contains(HasSubstr("has waited for 5 min: n3")));
  EXPECT_GE(h_.state(run).open_alerts(), 2U);
  const auto reported = h_.alerts(run).size();
  away(false);
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").running.has_value(); }));
  h_.run_until([] { return false; }, std::chrono::seconds(5));
  EXPECT_EQ(h_.state(run).open_alerts(), 0U);
  EXPECT_EQ(h_.alerts(run).size(), reported) << "what was reported stays on record";
  ASSERT_TRUE(h_.state(run).alerts[0].cleared_at.has_value());
  EXPECT_GT(*h_.state(run).alerts[0].cleared_at, h_.state(run).alerts[0].at);
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, AFullDiskRaisesAnAlertWithinMinutes) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.cluster.node("n3").disk_free = 0;
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).steps.at("scavenge-n3").status == StepStatus::kWaiting; }));
  h_.run_until([] { return false; }, std::chrono::minutes(4));
  EXPECT_EQ(h_.state(run).open_alerts(), 0U);
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_EQ(h_.state(run).open_alerts(), 1U);
  EXPECT_THAT(h_.alerts(run), Contains(AllOf(HasSubstr("for 5 min"), HasSubstr("free"))));
}

TEST_F(Intents, APassedDeadlineRaisesAnAlertAndThePersonDecides) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.gate_deadline_ms = 10'000;
  const auto run = start(policy);
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").last_finished.has_value(); }));
  h_.cluster.node("n3").writer = 0;  // it lags
  h_.cluster.node("n1").writer = std::int64_t{1} << 40U;
  h_.run_until([] { return false; }, std::chrono::seconds(40));
  ASSERT_EQ(h_.alerts(run).size(), 1U);
  EXPECT_THAT(h_.alerts(run)[0], HasSubstr("lags"));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
}

TEST_F(Intents, ARestartedControllerContinuesToCountHowLongAGateIsClosed) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.gate_deadline_ms = 60'000;
  const auto run = start(policy);
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").last_finished.has_value(); }));
  h_.cluster.node("n3").writer = 0;  // it lags
  h_.cluster.node("n1").writer = std::int64_t{1} << 40U;
  for (int i = 0; i < 2; ++i) {
    h_.run_until([] { return false; }, std::chrono::seconds(40));
    if (i == 0) {
      EXPECT_TRUE(h_.alerts(run).empty());
      h_.crash();
      h_.boot();
    }
  }
  ASSERT_EQ(h_.alerts(run).size(), 1U) << "after 80 seconds in all";
  h_.crash();
  h_.boot();
  h_.run_until([] { return false; }, std::chrono::seconds(40));
  EXPECT_EQ(h_.alerts(run).size(), 1U) << "once, across restarts";
}

TEST_F(Intents, WhatAnAgentDoesNotKnowYetIsShownInItsOwnWordsAndAskedEverMoreSeldom) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  auto& n2 = h_.cluster.node("n2");
  auto& status = n2.operations.begin()->second.status;
  status.state = api::OperationState::kUnknown;
  status.error = "the server is stopped and does not start: no space left on device";
  n2.running->ends = Monotonic::max();
  h_.run_until([] { return false; }, std::chrono::seconds(10));
  EXPECT_THAT(h_.state(run).steps.at("scavenge-n2").reason, HasSubstr("does not start: no space"));
  int asked = 0;
  h_.cluster.dress = [&asked](const test::FakeNode&, const http::Request& request,
                              http::Response&) {
    asked += request.target.starts_with("/agent/v1/operations/") ? 1 : 0;
  };
  h_.run_until([] { return false; }, std::chrono::seconds(100));
  EXPECT_LE(asked, 110) << "ten times more seldom than what works";
  EXPECT_GE(asked, 50);
}

}  // namespace
}  // namespace verger::controller
