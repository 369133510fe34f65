#include "controller/executor/detail/step_machine.h"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/step_support.h"
#include "tests/support/controller/run_on_journal.h"

namespace verger::controller::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using test::RunOnJournal;
using ::testing::ElementsAre;

/// What its node shows, look after look; the last of it stays.
struct Script {
  Readiness readiness{};
  std::vector<ActAnswer::Kind> answers{ActAnswer::Kind::kAccepted};
  std::deque<Verdict::Kind> verdicts;
  bool can_undo = true;
  int acts = 0;
  int interrupts = 0;
};

class ScriptedStep final : public StepKind {
 public:
  explicit ScriptedStep(Script& script) : script_(script) {}
  [[nodiscard]] std::string_view name() const override { return "scripted"; }
  [[nodiscard]] bool can_undo() const override { return script_.can_undo; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return true; }
  net::awaitable<void> interrupt(StepContext) override {
    ++script_.interrupts;
    co_return;
  }
  net::awaitable<Readiness> prepare(StepContext) override { co_return script_.readiness; }
  net::awaitable<ActAnswer> act(StepContext) override {
    const auto nth =
        std::min<std::size_t>(static_cast<std::size_t>(script_.acts++), script_.answers.size() - 1);
    co_return ActAnswer{.kind = script_.answers[nth], .reason = "so it goes"};
  }
  net::awaitable<Verdict> observe(StepContext) override {
    const auto kind = script_.verdicts.front();
    if (script_.verdicts.size() > 1) {
      script_.verdicts.pop_front();
    }
    co_return steps::verdict(kind, "it looks so");
  }

 private:
  Script& script_;
};

class StepMachineTest : public ::testing::Test {
 protected:
  using Kind = Verdict::Kind;

  void SetUp() override {
    h_.kinds.add(std::make_unique<ScriptedStep>(script_));
    planner::Step step;
    step.id = "x-n1";
    step.kind = "scripted";
    step.node = "n1";
    step.attempts = 2;
    planner::Stage stage;
    stage.id = "s";
    stage.deadline_ms = milliseconds(minutes(10)).count();
    stage.undo_deadline_ms = 60'000;
    stage.on_failure = planner::FailureRule::kUndoAll;
    stage.atomic = atomic_;
    stage.groups = {{step}};
    h_.start({stage});
    h_.run->record(events::kStageStarted, {{"stage", "s"}});
    h_.run->begin_deadline(this->stage(), stage.deadline_ms);
    machine_ = std::make_unique<StepMachine>(h_.run);
  }
  [[nodiscard]] const planner::Stage& stage() { return h_.run->state().plan->stages.front(); }
  [[nodiscard]] const planner::Step& step() { return stage().groups.front().front(); }
  StepEnd drive() { return h_.wait_for(machine_->drive(stage(), step())); }
  StepState& state() { return h_.run->state_of(step()); }

  bool atomic_ = false;  ///< its stage; set before SetUp
  Script script_;
  RunOnJournal h_;
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
  h_.run->record(
      events::kStepIntended,
      {{"step", "x-n1"}, {"operation", "o"}, {"attempt", 1}, {"memo", nlohmann::json::object()}});
  h_.run->live().group_failed = true;
  const auto began = h_.time.monotonic();
  EXPECT_EQ(drive(), StepEnd::kLeft);
  EXPECT_LT(h_.time.monotonic() - began, std::chrono::seconds(1));
  EXPECT_EQ(state().status, StepStatus::kActing);
}

TEST_F(StepMachineTest, APauseInterruptsIt) {
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kDone};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", ""}, {"mode", "now"}});
  h_.run->record(
      events::kStepIntended,
      {{"step", "x-n1"}, {"operation", "o"}, {"attempt", 1}, {"memo", nlohmann::json::object()}});
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.interrupts, 2);
}

class AtomicStepMachineTest : public StepMachineTest {
 protected:
  AtomicStepMachineTest() { atomic_ = true; }
  void begin_step() {
    h_.run->record(
        events::kStepIntended,
        {{"step", "x-n1"}, {"operation", "o"}, {"attempt", 1}, {"memo", nlohmann::json::object()}});
  }
};

TEST_F(AtomicStepMachineTest, APauseDoesNotInterruptIt) {
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kDone};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", ""}, {"mode", "now"}});
  begin_step();
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.interrupts, 0);
}

TEST_F(AtomicStepMachineTest, WhatDidNotArriveIsSentAgainAlsoWhileAPauseWaits) {
  script_.verdicts = {Kind::kNotArrived, Kind::kDone};
  h_.run->record(events::kRunPausing, {{"by", "me"}, {"reason", ""}, {"mode", "now"}});
  begin_step();
  EXPECT_EQ(drive(), StepEnd::kDone);
  EXPECT_EQ(script_.acts, 1);
}

TEST_F(AtomicStepMachineTest, IsLeftForTheUndoWhereItsNodeIsSkipped) {
  script_.verdicts = {Kind::kUnknown};
  begin_step();
  h_.run->record(events::kNodeSkipped, {{"node", "n1"}, {"by", "me"}, {"reason", "x"}});
  EXPECT_EQ(drive(), StepEnd::kLeft);
  EXPECT_NE(state().status, StepStatus::kSkipped);
}

TEST_F(StepMachineTest, SettlingStopsWhatRunsAndWatchesItsEnd) {
  script_.verdicts = {Kind::kRunning, Kind::kRunning, Kind::kStopped};
  h_.run->record(
      events::kStepIntended,
      {{"step", "x-n1"}, {"operation", "o"}, {"attempt", 1}, {"memo", nlohmann::json::object()}});
  h_.run->live().group_failed = true;
  h_.wait_for(machine_->settle(stage(), step(), minutes(5)));
  EXPECT_EQ(script_.interrupts, 2);
  EXPECT_EQ(state().status, StepStatus::kPending) << "and it is not begun again";
  EXPECT_EQ(script_.acts, 0);
}

TEST_F(StepMachineTest, SettlingLeavesWhatCannotTellAndCanBeUndone) {
  script_.verdicts = {Kind::kUnknown};
  h_.run->record(
      events::kStepIntended,
      {{"step", "x-n1"}, {"operation", "o"}, {"attempt", 1}, {"memo", nlohmann::json::object()}});
  const auto began = h_.time.monotonic();
  h_.wait_for(machine_->settle(stage(), step(), minutes(5)));
  EXPECT_LT(h_.time.monotonic() - began, std::chrono::seconds(1));
  EXPECT_EQ(state().status, StepStatus::kUnknown);
}

TEST_F(StepMachineTest, SettlingEndsAtItsLimitWhereNothingCanBeUndone) {
  script_.can_undo = false;
  script_.verdicts = {Kind::kUnknown};
  h_.run->record(
      events::kStepIntended,
      {{"step", "x-n1"}, {"operation", "o"}, {"attempt", 1}, {"memo", nlohmann::json::object()}});
  const auto began = h_.time.monotonic();
  h_.wait_for(machine_->settle(stage(), step(), std::chrono::seconds(30)));
  EXPECT_GE(h_.time.monotonic() - began, std::chrono::seconds(30));
  EXPECT_LT(h_.time.monotonic() - began, std::chrono::seconds(45));
}

}  // namespace
}  // namespace verger::controller::detail
