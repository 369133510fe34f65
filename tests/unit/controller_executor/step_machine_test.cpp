#include "controller/executor/detail/step_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/scripted_step.h"

namespace verger::controller::detail {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;

class StepMachineTest : public ScriptedRun {
 protected:
  using Kind = Verdict::Kind;

  void SetUp() override {
    auto stage = stage_of_one();
    stage.atomic = atomic_;
    begin(std::move(stage));
    machine_ = std::make_unique<StepMachine>(h_.run);
  }
  StepEnd drive() { return h_.wait_for(machine_->drive(stage(), step())); }

  bool atomic_ = false;  ///< its stage; set before SetUp
  std::unique_ptr<StepMachine> machine_;
};

TEST_F(StepMachineTest, IsDoneOnceItsNodeShowsIt) {
  script_.verdicts = {Kind::kRunning, Kind::kUnknown, Kind::kDone};
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.acts, 1);
  EXPECT_THAT(h_.types("x-n1"), ElementsAre(events::kStepIntended, events::kStepActed,
                                            events::kStepUnknown, events::kStepDone));
}

TEST_F(StepMachineTest, WhatDidNotHappenIsDoneAgainUntilTheAttemptsAreUsedUp) {
  script_.verdicts = {Kind::kNotHappened};
  EXPECT_EQ(drive(), StepEnd::kFailed);
  EXPECT_EQ(script_.acts, 2);
  EXPECT_EQ(state().reason, "2 attempts: it looks so");
}

TEST_F(StepMachineTest, ARefusalIsAnAttemptAndWhatWasNotSentIsNone) {
  script_.answers = {ActAnswer::Kind::kNotSent, ActAnswer::Kind::kRefused,
                     ActAnswer::Kind::kAccepted};
  script_.verdicts = {Kind::kDone};
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.acts, 3);
  EXPECT_EQ(state().attempt, 2);
}

TEST_F(StepMachineTest, WhatIsNotNeededNeverActs) {
  script_.readiness = {.kind = Readiness::Kind::kNotNeeded};
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.acts, 0);
}

TEST_F(StepMachineTest, FailsAtTheDeadlineOfAStageThatUndoesAll) {
  script_.verdicts = {Kind::kUnknown};
  const auto began = h_.time.monotonic();
  EXPECT_EQ(drive(), StepEnd::kFailed);
  EXPECT_GE(h_.time.monotonic() - began, minutes(10));
  EXPECT_EQ(state().reason, "deadline passed; it looks so");
}

TEST_F(StepMachineTest, IsLeftAtOnceWhereTheStepBesideItFailed) {
  script_.verdicts = {Kind::kRunning};
  intend();
  h_.run->live().group_failed = true;
  const auto began = h_.time.monotonic();
  EXPECT_EQ(drive(), StepEnd::kLeft);
  EXPECT_LT(h_.time.monotonic() - began, std::chrono::seconds(1));
  EXPECT_EQ(state().status, StepStatus::kActing);
}

TEST_F(StepMachineTest, APauseInterruptsIt) {
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kDone};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", ""}, {"mode", "now"}});
  intend();
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.interrupts, 2);
}

class AtomicStepMachineTest : public StepMachineTest {
 protected:
  AtomicStepMachineTest() { atomic_ = true; }
};

TEST_F(AtomicStepMachineTest, APauseDoesNotInterruptIt) {
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kDone};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", ""}, {"mode", "now"}});
  intend();
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.interrupts, 0);
}

TEST_F(AtomicStepMachineTest, WhatDidNotArriveIsSentAgainAlsoWhileAPauseWaits) {
  script_.verdicts = {Kind::kNotArrived, Kind::kDone};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", ""}, {"mode", "now"}});
  intend();
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.acts, 1);
}

TEST_F(AtomicStepMachineTest, IsLeftForTheUndoWhereItsNodeIsSkipped) {
  script_.verdicts = {Kind::kUnknown};
  intend();
  h_.run->record(events::kNodeSkipped, {{"node", "n1"}, {"by", "me"}, {"reason", "x"}});
  EXPECT_EQ(drive(), StepEnd::kLeft);
  EXPECT_NE(state().status, StepStatus::kSkipped);
}

TEST_F(StepMachineTest, SettlingStopsWhatRunsAndWatchesItsEnd) {
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kStopped};
  intend();
  h_.run->live().group_failed = true;
  h_.wait_for(machine_->settle(stage(), step(), minutes(5)));
  EXPECT_EQ(script_.interrupts, 2);
  EXPECT_EQ(state().status, StepStatus::kPending) << "and it is not begun again";
  EXPECT_EQ(script_.acts, 0);
}

TEST_F(StepMachineTest, SettlingLeavesWhatCannotTellAndCanBeUndone) {
  script_.verdicts = {Kind::kUnknown};
  intend();
  const auto began = h_.time.monotonic();
  h_.wait_for(machine_->settle(stage(), step(), minutes(5)));
  EXPECT_LT(h_.time.monotonic() - began, std::chrono::seconds(1));
  EXPECT_EQ(state().status, StepStatus::kUnknown);
}

TEST_F(StepMachineTest, SettlingEndsAtItsLimitWhereNothingCanBeUndone) {
  script_.can_undo = false;
  script_.verdicts = {Kind::kUnknown};
  intend();
  const auto began = h_.time.monotonic();
  h_.wait_for(machine_->settle(stage(), step(), std::chrono::seconds(30)));
  EXPECT_GE(h_.time.monotonic() - began, std::chrono::seconds(30));
  EXPECT_LT(h_.time.monotonic() - began, std::chrono::seconds(45));
}

}  // namespace
}  // namespace verger::controller::detail
