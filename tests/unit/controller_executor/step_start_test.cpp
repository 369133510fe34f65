#include "controller/executor/detail/step_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/gate_table.h"
#include "tests/unit/controller_executor/scripted_step.h"

namespace verger::controller::detail {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StepStartTest : public ScriptedRun {
 protected:
  void begin_with(std::vector<planner::Gate> gates) {
    auto stage = stage_of_one();
    stage.groups.front().front().gates = std::move(gates);
    begin(std::move(stage));
    starts_.emplace(h_.run);
  }
  std::optional<StepEnd> start() { return h_.wait_for(starts_->start(stage(), step())); }
  std::optional<StepStart> starts_;
};

TEST_F(StepStartTest, IntendsBeforeItActs) {
  begin_with({});
  EXPECT_EQ(start(), std::nullopt) << "its state says what comes next";
  EXPECT_EQ(script_.acts, 1);
  EXPECT_THAT(h_.types("x-n1"), ElementsAre(events::kStepIntended, events::kStepActed));
  EXPECT_EQ(state().status, StepStatus::kActing);
  EXPECT_EQ(state().attempt, 1);
  EXPECT_FALSE(state().operation.empty());
}

TEST_F(StepStartTest, AClosedGateIsJournaledAndNothingIsPrepared) {
  begin_with({{"voters-alive", 0}});
  h_.cluster.node("n2").up = false;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(start(), std::nullopt);
  }
  EXPECT_THAT(h_.types("x-n1"), Each(std::string(events::kStepWaiting)));
  EXPECT_EQ(state().status, StepStatus::kWaiting);
  EXPECT_THAT(state().gates, HasSubstr("\"voters-alive\""));
  EXPECT_EQ(script_.prepared, 0);
  h_.cluster.node("n2").up = true;
  for (int i = 0; i < 100 && state().status != StepStatus::kActing; ++i) {
    EXPECT_EQ(start(), std::nullopt);
  }
  EXPECT_EQ(state().status, StepStatus::kActing);
}

TEST_F(StepStartTest, WhatIsTooLateFailsWithoutAGate) {
  begin_with({{"voters-alive", 0}});
  h_.cluster.node("n2").up = false;
  script_.too_late = "the others have it already";
  EXPECT_EQ(start(), StepEnd::kFailed);
  EXPECT_EQ(state().reason, "the others have it already");
}

TEST_F(StepStartTest, WaitsAsItsKindSaysAndRaisesItsAlert) {
  begin_with({});
  script_.readiness = {
      .kind = Readiness::Kind::kWait, .reason = "its disk is away", .alert = "look after it"};
  EXPECT_EQ(start(), std::nullopt);
  EXPECT_EQ(start(), std::nullopt);
  EXPECT_EQ(state().status, StepStatus::kWaiting);
  EXPECT_EQ(state().reason, "its disk is away");
  ASSERT_EQ(h_.run->state().alerts.size(), 1U);
  EXPECT_EQ(h_.run->state().alerts.front().reason, "look after it");
  EXPECT_EQ(script_.acts, 0);
}

TEST_F(StepStartTest, WhatCannotBeDoneFailsWithoutAnAttempt) {
  begin_with({});
  script_.readiness = {.kind = Readiness::Kind::kFail, .reason = "there is no point"};
  EXPECT_EQ(start(), StepEnd::kFailed);
  EXPECT_EQ(state().attempt, 0);
  EXPECT_EQ(state().reason, "there is no point");
}

TEST_F(StepStartTest, ARefusedAttemptIsFollowedByANewOneAfterAWhile) {
  begin_with({});
  script_.answers = {ActAnswer::Kind::kRefused, ActAnswer::Kind::kAccepted};
  EXPECT_EQ(start(), std::nullopt);
  EXPECT_EQ(state().status, StepStatus::kPending);
  const auto first = state().operation;
  const auto began = h_.time.monotonic();
  while (state().status != StepStatus::kActing) {
    ASSERT_LT(h_.time.monotonic() - began, std::chrono::minutes(1));
    EXPECT_EQ(start(), std::nullopt);
  }
  EXPECT_EQ(script_.prepared, 2) << "not while it backs off";
  EXPECT_EQ(state().attempt, 2);
  EXPECT_NE(state().operation, first) << "another permit, another operation";
}

TEST_F(StepStartTest, WithoutAllPermitsNothingIsIntended) {
  h_.cluster.agents = true;
  begin_with({{std::string(planner::kAgentsAnswer), 0}});
  h_.cluster.fate = [](const test::FakeNode& node, const http::Request& request) {
    return node.name == "n2" && request.target == "/agent/v1/permits"
               ? std::optional(test::Fate::kLost)
               : std::nullopt;
  };
  EXPECT_EQ(start(), std::nullopt);
  EXPECT_THAT(h_.types("x-n1"), ElementsAre(events::kStepWaiting));
  EXPECT_THAT(state().reason, HasSubstr("an agent gives no permit: n2: "));
  EXPECT_EQ(script_.acts, 0);
  EXPECT_EQ(state().attempt, 0);
}

TEST_F(StepStartTest, ACancelThatComesWithThePermitsIsObeyed) {
  h_.cluster.agents = true;
  begin_with({{std::string(planner::kAgentsAnswer), 0}});
  h_.cluster.acted = [this](const test::FakeNode&, const http::Request& request) {
    if (request.target == "/agent/v1/permits" && !h_.run->cancelling()) {
      h_.run->record(events::kRunCancelling, {{"by", "me"}, {"reason", "enough"}});
    }
  };
  EXPECT_EQ(start(), std::nullopt);
  EXPECT_TRUE(h_.run->cancelling());
  EXPECT_THAT(h_.types("x-n1"), IsEmpty());
  EXPECT_EQ(script_.acts, 0);
}

TEST_F(StepStartTest, AnIntentIsGivenUpOnceItsPermitIsRevoked) {
  h_.cluster.agents = true;
  begin_with({{std::string(planner::kAgentsAnswer), 0}});
  script_.answers = {ActAnswer::Kind::kUnknown};
  EXPECT_EQ(start(), std::nullopt);
  h_.cluster.node("n1").agent_up = false;
  const auto give_up = [this] {
    return h_.wait_for(starts_->give_up_intent(step(), context(), "it was never requested", false));
  };
  EXPECT_FALSE(give_up());
  EXPECT_EQ(state().status, StepStatus::kUnknown) << "as it was";
  h_.cluster.node("n1").agent_up = true;
  EXPECT_TRUE(give_up());
  EXPECT_EQ(state().status, StepStatus::kPending);
  EXPECT_EQ(state().attempt, 0) << "what was never requested is no attempt";
}

}  // namespace
}  // namespace verger::controller::detail
