// What a pause, a resume, a cancel, and the end of the controller do to a scavenge that runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/intents_fixture.h"

namespace verger::controller {
namespace {

using ::testing::HasSubstr;
using testing::Intents;
using ::testing::Not;

TEST_F(Intents, APauseStopsTheScavengeAndResumeContinuesAtTheSamePoint) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.run_until([] { return false; }, std::chrono::seconds(2));
  ASSERT_TRUE(h_.executor->pause(run, "me", "peak hours").has_value());
  EXPECT_EQ(h_.state(run).status, RunStatus::kPausing);
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_FALSE(h_.cluster.node("n2").running.has_value());
  EXPECT_EQ(h_.cluster.node("n2").unfinished, 0);
  h_.run_until([] { return false; }, std::chrono::minutes(1));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
  EXPECT_TRUE(h_.executor->pause(run, "me", "again").has_value()) << "a pause always succeeds";

  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.node("n2").scavenge_starts, 2);
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n2").attempt, 1) << "being stopped costs no attempt";
}

TEST_F(Intents, APauseLeavesTheScavengeToEndWhereThePolicySaysSo) {
  auto policy = ControllerHarness::quick_policy();
  policy.pauses.on_pause = planner::PauseRule::kLeave;
  const auto run = start(policy);
  ASSERT_TRUE(scavenges("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n2").finished.at(0), 1);
  EXPECT_FALSE(h_.cluster.node("n3").running.has_value());
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, APauseOutlivesACrash) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  h_.crash();
  h_.boot();
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_FALSE(h_.cluster.node("n2").running.has_value());
  h_.crash();
  h_.boot();
  h_.run_until([] { return false; }, std::chrono::minutes(1));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, APauseWhileTheNodeIsDownSucceedsAndSaysWhatItWaitsFor) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  h_.cluster.node("n3").up = false;
  h_.cluster.node("n3").agent_up = false;
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  h_.run_until([] { return false; }, std::chrono::seconds(30));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPausing);
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n3").status, StepStatus::kUnknown);
  EXPECT_THAT(h_.state(run).steps.at("scavenge-n3").reason, Not(::testing::IsEmpty()));
  h_.cluster.node("n3").up = true;
  h_.cluster.node("n3").agent_up = true;
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, ResumeRefusesWhatNoLongerHolds) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  h_.cluster.node("n3").version = "24.10.0";
  const auto resumed = h_.wait_for(h_.executor->resume(run, "me"));
  ASSERT_FALSE(resumed.has_value());
  EXPECT_EQ(resumed.error().code, Errc::kConflict);
  EXPECT_THAT(resumed.error().message, HasSubstr("n3: version was 24.6.0, is 24.10.0"));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
}

TEST_F(Intents, ACancelStopsWhatRunsAndEndsInASafeState) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "wrong cluster").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.state(run).reason, "wrong cluster");
  EXPECT_FALSE(h_.cluster.node("n3").running.has_value());
  EXPECT_EQ(h_.cluster.node("n3").unfinished, 0);
  const auto late = h_.executor->pause(run, "me", "");
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kConflict);
}

TEST_F(Intents, StopLeavesTheRunToTheNextStart) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  bool stopped = false;
  net::co_spawn(*h_.context, h_.executor->stop(),
                [&stopped](std::exception_ptr) { stopped = true; });
  ASSERT_TRUE(h_.run_until([&stopped] { return stopped; }));
  EXPECT_TRUE(h_.cluster.node("n2").running.has_value()) << "what runs is left alone";
  h_.crash();
  h_.boot();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.node("n2").scavenge_starts, 1);
}

}  // namespace
}  // namespace verger::controller
