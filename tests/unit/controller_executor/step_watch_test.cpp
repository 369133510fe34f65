#include "controller/executor/detail/step_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/detached.hpp>

#include "tests/unit/controller_executor/scripted_step.h"

namespace verger::controller::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StepWatchTest : public ScriptedRun {
 protected:
  using Kind = Verdict::Kind;

  void begin_with(planner::FailureRule rule, bool agents = false) {
    h_.cluster.agents = agents;
    auto stage = stage_of_one();
    stage.on_failure = rule;
    begin(std::move(stage));
    starts_.emplace(h_.run);
    watch_.emplace(h_.run, *starts_);
    intend();
  }
  std::optional<StepEnd> watch() { return h_.wait_for(watch_->watch(stage(), step())); }

  std::optional<StepStart> starts_;
  std::optional<StepWatch> watch_;
};

TEST_F(StepWatchTest, AnEndThatIsSeenBeforeAnAnswerWaitsUntilTheRequestCannotArrive) {
  begin_with(planner::FailureRule::kSkipNode, true);
  h_.cluster.node("n1").agent_up = false;
  script_.verdicts = {Kind::kDone};
  int looks = 0;
  script_.looked = [&] {
    if (++looks == 3) {
      EXPECT_EQ(state().status, StepStatus::kUnknown);
      EXPECT_THAT(state().reason, HasSubstr("the request may still arrive"));
      h_.cluster.node("n1").agent_up = true;
    }
  };
  EXPECT_EQ(watch(), StepEnd::kDone);
  EXPECT_EQ(looks, 3);
}

TEST_F(StepWatchTest, WhatHasNotArrivedIsSentAgainUnderItsOperation) {
  begin_with(planner::FailureRule::kSkipNode);
  script_.verdicts = {Kind::kNotArrived, Kind::kDone};
  EXPECT_EQ(watch(), StepEnd::kDone);
  EXPECT_EQ(script_.acts, 1);
  EXPECT_EQ(state().operation, "o");
  EXPECT_EQ(state().attempt, 1);
  EXPECT_THAT(h_.types("x-n1"),
              ElementsAre(events::kStepIntended, events::kStepActed, events::kStepDone));
}

TEST_F(StepWatchTest, WhatHasNotArrivedOfACancelledRunIsGivenUp) {
  begin_with(planner::FailureRule::kSkipNode);
  script_.verdicts = {Kind::kNotArrived};
  h_.run->record(events::kRunCancelling, {{"by", "me"}, {"reason", "enough"}});
  EXPECT_EQ(watch(), std::nullopt);
  EXPECT_EQ(script_.acts, 0);
  EXPECT_EQ(state().status, StepStatus::kPending);
  EXPECT_EQ(state().reason, "it was never requested");
}

TEST_F(StepWatchTest, AStageThatUndoesAllLeavesTheStepOfACancelledRunToItsUndo) {
  begin_with(planner::FailureRule::kUndoAll);
  script_.verdicts = {Kind::kRunning};
  h_.run->record(events::kRunCancelling, {{"by", "me"}, {"reason", "enough"}});
  EXPECT_EQ(watch(), StepEnd::kLeft);
  EXPECT_EQ(state().status, StepStatus::kActing);
}

TEST_F(StepWatchTest, AStopIsJournaledBeforeItIsRequested) {
  begin_with(planner::FailureRule::kSkipNode);
  answered();
  script_.verdicts = {Kind::kRunning, Kind::kStopped};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", "noon"}, {"mode", "policy"}});
  EXPECT_EQ(watch(), std::nullopt);
  EXPECT_EQ(script_.interrupts, 1);
  EXPECT_THAT(h_.types("x-n1"), ElementsAre(events::kStepIntended, events::kStepActed,
                                            events::kStepInterrupting, events::kStepInterrupted));
  EXPECT_EQ(state().status, StepStatus::kPending);
}

TEST_F(StepWatchTest, APauseThatLetsWorkEndStopsNothing) {
  begin_with(planner::FailureRule::kSkipNode);
  answered();
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kDone};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", "noon"}, {"mode", "drain"}});
  EXPECT_EQ(watch(), StepEnd::kDone);
  EXPECT_EQ(script_.interrupts, 0);
}

TEST_F(StepWatchTest, OfASkippedNodeAnOutcomeThatCannotBeSeenIsNotWaitedFor) {
  begin_with(planner::FailureRule::kSkipNode);
  answered();
  script_.verdicts = {Kind::kUnknown};
  h_.run->record(events::kNodeSkipped, {{"node", "n1"}});
  const auto began = h_.time.monotonic();
  EXPECT_EQ(watch(), StepEnd::kSkipped);
  EXPECT_LT(h_.time.monotonic() - began, seconds(1));
  EXPECT_TRUE(state().end_unseen);
}

TEST_F(StepWatchTest, TimeInWhichNoControllerLookedDoesNotCountAsWork) {
  begin_with(planner::FailureRule::kSkipNode);
  answered();
  h_.wait_for(h_.run->sleep_for(minutes(30)));
  h_.run->live().watched.clear();  // as in the next controller
  script_.verdicts = {Kind::kDone};
  EXPECT_EQ(watch(), StepEnd::kDone);
  EXPECT_THAT(h_.types("x-n1"), Contains(std::string(events::kStepProgress)));
  EXPECT_LT(state().active_ms, 60'000);
}

class StepAtAgentTest : public StepWatchTest {
 protected:
  /// The agent of n1 works on the step's operation for so long, and looks are a second apart.
  void begin_work(milliseconds takes) {
    begin_with(planner::FailureRule::kSkipNode, true);
    answered();
    h_.run->parts().options.poll_interval = seconds(1);
    script_.waits_for_agent = true;
    auto& operation = h_.cluster.node("n1").operations["o"];
    operation.status.id = "o";
    operation.status.state = api::OperationState::kActing;
    auto ended = operation.status;
    ended.state = api::OperationState::kDone;
    operation.later = std::pair(h_.time.monotonic() + takes, ended);
    h_.cluster.dress = [this](const auto&, const http::Request& request, auto&) {
      ++(request.target.starts_with("/agent/v1/operations/") ? asked_agent_ : asked_others_);
    };
    script_.looked = [this] { ++looks_; };
    began_ = h_.time.monotonic();
  }
  Monotonic took() { return h_.time.monotonic() - began_; }

  Monotonic began_{};
  int looks_ = 0;
  int asked_agent_ = 0;
  int asked_others_ = 0;
};

TEST_F(StepAtAgentTest, BetweenTwoLooksOnlyTheAgentIsQueried) {
  begin_work(milliseconds(650));
  script_.verdicts = {Kind::kRunning, Kind::kDone};
  EXPECT_EQ(watch(), StepEnd::kDone);
  EXPECT_LT(took(), milliseconds(900)) << "its end is seen soon";
  EXPECT_EQ(looks_, 2);
  EXPECT_GE(asked_agent_, 4);
  EXPECT_LE(asked_others_, 2 * 5) << "three nodes' gossip, and what the step's own one says";
}

TEST_F(StepAtAgentTest, LooksAreMadeAtLeastOnceInEachInterval) {
  begin_work(minutes(1));
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kRunning, Kind::kDone};
  EXPECT_EQ(watch(), StepEnd::kDone);
  EXPECT_EQ(looks_, 4);
  EXPECT_GE(took(), seconds(3));
  EXPECT_LT(took(), milliseconds(3'500));
}

TEST_F(StepAtAgentTest, APauseIsNotWaitedOut) {
  begin_work(minutes(1));
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kStopped};
  auto later = [](test::RunOnJournal& run) -> net::awaitable<void> {
    co_await run.time.sleep_for(milliseconds(350));
    run.run->record(events::kRunPausing, {{"by", "me"}, {"reason", "noon"}, {"mode", "policy"}});
    run.run->live().wake();
  };
  net::co_spawn(h_.context, later(h_), net::detached);
  script_.looked = [this] {
    if (++looks_ == 2) {
      EXPECT_LT(took(), milliseconds(500));
    }
  };
  EXPECT_EQ(watch(), std::nullopt);
  EXPECT_EQ(looks_, 3);
  EXPECT_EQ(script_.interrupts, 1);
}

TEST_F(StepWatchTest, ForItsUndoAStepIsStoppedAndLeftAtItsLimit) {
  begin_with(planner::FailureRule::kUndoAll);
  answered();
  script_.can_undo = false;
  script_.verdicts = {Kind::kRunning};
  const auto began = h_.time.monotonic();
  EXPECT_EQ(h_.wait_for(watch_->watch_for_undo(stage(), step(), began + seconds(20))),
            StepEnd::kLeft);
  EXPECT_GE(h_.time.monotonic() - began, seconds(20));
  EXPECT_GT(script_.interrupts, 1) << "repeated until it stops";
}

}  // namespace
}  // namespace verger::controller::detail
