// The priority that a move of the leadership lowered is set back, wherever the move is interrupted.
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/intents_fixture.h"

namespace verger::controller {
namespace {

using testing::Intents;

TEST_F(Intents, ACancelInTheMiddleOfAMoveRestoresThePriority) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
}

TEST_F(Intents, ACancelledMoveRestoresThePriorityThoughAnotherNodesAgentIsSilent) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  h_.cluster.node("n3").agent_up = false;
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::minutes(2)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_TRUE(h_.alerts(run).empty());
}

TEST_F(Intents, APriorityIsSetBackAfterTheMoveThoughAnotherNodesAgentIsSilent) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.total_resigns() == 1; }));
  h_.cluster.node("n3").agent_up = false;
  EXPECT_TRUE(
      h_.run_until([&] { return h_.state(run).steps.at("restore-n1").status == StepStatus::kDone; },
                   std::chrono::minutes(2)));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
}

TEST_F(Intents, ACrashInTheMiddleOfACancelledMoveRestoresThePriorityToo) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  h_.crash();
  h_.boot();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
}

TEST_F(Intents, APauseInTheMiddleOfAMoveRestoresThePriorityAndResumeMovesOnce) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_EQ(h_.cluster.total_resigns(), 0);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.state(run).planned_moves(), 1);
}

TEST_F(Intents, APauseAfterTheResignationRestoresThePriorityAndMovesTheLeaderNoFurther) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.total_resigns() == 1; }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.total_resigns(), 1);
  EXPECT_EQ(h_.state(run).planned_moves(), 1);
}

TEST_F(Intents, ACrashWhileAPauseRestoresThePriorityDoesNotLoseTheRun) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  h_.news = true;
  ASSERT_TRUE(h_.run_until([&] {
    return std::exchange(h_.news, false) &&
           h_.state(run).stages.at("move-n1").status == StageStatus::kUndoing;
  }));
  h_.crash();
  h_.boot();
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

}  // namespace
}  // namespace verger::controller
