#include "controller/executor/detail/stage_driver.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "tests/support/controller/run_on_journal.h"

namespace verger::controller::detail {
namespace {

using test::RunOnJournal;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// Ends steps as configured, in the journal too.
class FakeRunner final : public StepRunner {
 public:
  explicit FakeRunner(RunContext& run) : run_(run) {}
  net::awaitable<StepEnd> drive(const planner::Stage&, const planner::Step& step) override {
    driven.push_back(step.id);
    const auto found = ends.find(step.id);
    const auto end = found == ends.end() ? StepEnd::kDone : found->second;
    if (end == StepEnd::kDone) {
      run_.record(events::kStepDone, {{"step", step.id}, {"result", nlohmann::json::object()}});
    } else if (end == StepEnd::kFailed) {
      run_.record(events::kStepFailed, {{"step", step.id}, {"code", "x"}, {"reason", "it broke"}});
    } else if (end == StepEnd::kSkipped) {
      run_.record(events::kStepSkipped, {{"step", step.id}, {"reason", "x"}});
    }
    co_return end;
  }
  net::awaitable<void> settle(const planner::Stage&, const planner::Step&,
                              std::chrono::milliseconds) override {
    co_return;
  }
  std::map<std::string, StepEnd> ends;
  std::vector<std::string> driven;

 private:
  RunContext& run_;
};

class FakeUndo final : public StageUndo {
 public:
  net::awaitable<void> undo(const planner::Stage& stage, std::string_view why) override {
    undone.push_back(fmt::format("{} {}", stage.id, why));
    co_return;
  }
  std::vector<std::string> undone;
};

planner::Step step_of_any_kind(const std::string& id) {
  planner::Step out;
  out.id = id;
  out.kind = "any";
  out.node = id;
  return out;
}

planner::Stage two_groups(planner::FailureRule rule) {
  planner::Stage out;
  out.id = "s";
  out.title = "s";
  out.deadline_ms = 60'000;
  out.undo_deadline_ms = 60'000;
  out.on_failure = rule;
  out.groups = {{step_of_any_kind("a"), step_of_any_kind("b")}, {step_of_any_kind("c")}};
  return out;
}

class StageDriverTest : public ::testing::Test {
 protected:
  void start(planner::FailureRule rule, bool atomic = false) {
    auto stage = two_groups(rule);
    stage.atomic = atomic;
    h_.start({std::move(stage)});
    runner_ = std::make_shared<FakeRunner>(*h_.run);
    undo_ = std::make_shared<FakeUndo>();
    driver_.emplace(h_.run, runner_, undo_);
  }
  std::optional<StageFailure> drive() {
    return h_.wait_for(driver_->drive(h_.run->state().plan->stages.front()));
  }
  StageStatus status() { return h_.run->state().stages.at("s").status; }

  RunOnJournal h_;
  std::shared_ptr<FakeRunner> runner_;
  std::shared_ptr<FakeUndo> undo_;
  std::optional<StageDriver> driver_;
};

TEST_F(StageDriverTest, DrivesGroupAfterGroup) {
  start(planner::FailureRule::kUndoAll);
  EXPECT_EQ(drive(), std::nullopt);
  EXPECT_THAT(runner_->driven, ElementsAre("a", "b", "c"));
  EXPECT_EQ(status(), StageStatus::kDone);
  EXPECT_THAT(undo_->undone, IsEmpty());
}

TEST_F(StageDriverTest, AFailureUndoesAllAndLeavesTheEndToTheRun) {
  start(planner::FailureRule::kUndoAll);
  runner_->ends["b"] = StepEnd::kFailed;
  const auto failure = drive();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->state, "undone");
  EXPECT_EQ(failure->reason, "b: it broke");
  EXPECT_THAT(runner_->driven, ElementsAre("a", "b")) << "the next group is not begun";
  EXPECT_THAT(undo_->undone, ElementsAre("s failure"));
}

TEST_F(StageDriverTest, WhereTheRuleIsToStopNothingIsUndone) {
  start(planner::FailureRule::kStop);
  runner_->ends["a"] = StepEnd::kFailed;
  const auto failure = drive();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->state, "failed");
  EXPECT_THAT(undo_->undone, IsEmpty());
}

TEST_F(StageDriverTest, WhereTheRuleIsToSkipTheRunContinuesWithoutTheNode) {
  start(planner::FailureRule::kSkipNode);
  runner_->ends["a"] = StepEnd::kFailed;
  EXPECT_EQ(drive(), std::nullopt);
  EXPECT_THAT(h_.run->state().skipped_nodes, UnorderedElementsAre("a"));
  EXPECT_EQ(h_.run->state().steps.at("c").status, StepStatus::kSkipped);
  EXPECT_EQ(status(), StageStatus::kFailed);
}

TEST_F(StageDriverTest, HoursThatEndInTheMiddleRollItBack) {
  start(planner::FailureRule::kUndoAll);
  runner_->ends["c"] = StepEnd::kClosed;
  EXPECT_EQ(drive(), std::nullopt);
  EXPECT_THAT(undo_->undone, ElementsAre("s hours"));
  EXPECT_EQ(status(), StageStatus::kPending) << "to be done again";
}

TEST_F(StageDriverTest, ASkippedStepDoesNotLeaveHalfOfIt) {
  start(planner::FailureRule::kUndoAll);
  runner_->ends["b"] = StepEnd::kSkipped;
  EXPECT_EQ(drive(), std::nullopt);
  EXPECT_THAT(undo_->undone, ElementsAre("s failure"));
  EXPECT_EQ(status(), StageStatus::kUndone);
}

TEST_F(StageDriverTest, AnAtomicOneIsUndoneWithoutOneOfItsNodes) {
  start(planner::FailureRule::kUndoAll, true);
  h_.run->record(events::kNodeSkipped, {{"node", "b"}, {"by", "me"}, {"reason", "x"}});
  runner_->ends["b"] = StepEnd::kLeft;
  const auto failure = drive();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->state, "undone");
  EXPECT_EQ(failure->reason, "b is left out, and stage s is done on all of its nodes or on none");
  EXPECT_THAT(runner_->driven, ElementsAre("a", "b")) << "the next group is not begun";
  EXPECT_THAT(undo_->undone, ElementsAre("s failure"));
}

TEST_F(StageDriverTest, ADeferredStageIsToComeAgain) {
  start(planner::FailureRule::kUndoAll);
  runner_->ends["a"] = StepEnd::kDeferred;
  EXPECT_EQ(drive(), std::nullopt);
  EXPECT_EQ(h_.run->state().stages.at("s").deferrals, 1);
  EXPECT_EQ(status(), StageStatus::kPending);
}

TEST_F(StageDriverTest, NoStepOfADeferredStageIsShownAsWaiting) {
  start(planner::FailureRule::kUndoAll);
  const auto& step = h_.run->state().steps.at("a");
  h_.run->record(events::kStepWaiting,
                 {{"step", "a"}, {"reason", "a lags"}, {"gates", {{{"gate", "lag-below"}}}}});
  ASSERT_EQ(h_.run->state().status, RunStatus::kWaiting);
  runner_->ends["a"] = StepEnd::kDeferred;
  EXPECT_EQ(drive(), std::nullopt);
  EXPECT_EQ(step.status, StepStatus::kPending);
  EXPECT_EQ(step.gates, "[]");
  EXPECT_EQ(step.time.counted, std::nullopt) << "its turn has not come";
  EXPECT_EQ(h_.run->state().status, RunStatus::kRunning);
  EXPECT_EQ(h_.run->state().reason, "");
}

}  // namespace
}  // namespace verger::controller::detail
