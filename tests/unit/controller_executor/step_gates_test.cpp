#include "controller/executor/detail/step_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/gate_table.h"
#include "tests/unit/controller_executor/scripted_step.h"

namespace verger::controller::detail {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StepGatesTest : public ScriptedRun {
 protected:
  void begin_with(std::vector<planner::Gate> gates, std::int64_t longest_ms = -1,
                  bool atomic = false) {
    auto stage = stage_of_one();
    stage.atomic = atomic;
    auto& step = stage.groups.front().front();
    step.gates = std::move(gates);
    if (longest_ms >= 0) {
      step.expected = {longest_ms / 2, longest_ms};
    }
    begin(std::move(stage));
    gates_.emplace(h_.run);
  }
  ClosedGates closed() { return gates_->closed(stage(), step(), context()); }
  /// As if the window closed so long from now, of the length given.
  ClosedGates closed_in_a_window(seconds left, seconds length) {
    auto now = context();
    const auto at = [&now](seconds from) {
      return Ticks(now.now.value() + from.count() * kTicksPerSecond);
    };
    now.snapshot.hours = planner::Hours{
        .open = true, .since = at(left - length), .until = at(left), .reason = "nightly"};
    return gates_->closed(stage(), step(), now);
  }
  /// In virtual time.
  void wait(std::chrono::milliseconds time) { h_.wait_for(h_.run->sleep_for(time)); }
  std::size_t open_alerts() { return h_.run->state().open_alerts(); }

  std::optional<StepGates> gates_;
};

TEST_F(StepGatesTest, OpenOnesHoldNothingBack) {
  begin_with({{"voters-alive", 0}, {"one-leader", 0}});
  const auto seen = closed();
  EXPECT_EQ(seen.reason, "");
  EXPECT_TRUE(seen.gates.empty());
  EXPECT_FALSE(seen.deferred);
}

TEST_F(StepGatesTest, AClosedOneHasItsNodeAndLimit) {
  begin_with({{"voters-alive", 0}, {"one-leader", 0}});
  h_.cluster.node("n2").up = false;
  const auto seen = closed();
  ASSERT_EQ(seen.gates.size(), 1U) << seen.gates.dump();
  EXPECT_EQ(seen.gates[0]["gate"], "voters-alive");
  EXPECT_EQ(seen.gates[0]["node"], "n2");
  EXPECT_NE(seen.gates[0]["limit"], "");
  EXPECT_THAT(seen.reason, HasSubstr("n2"));
  EXPECT_FALSE(seen.only_hours);
}

TEST_F(StepGatesTest, ANodeThatIsSkippedClosesNone) {
  begin_with({{"voters-alive", 0}});
  h_.cluster.node("n2").up = false;
  h_.run->record(events::kNodeSkipped, {{"node", "n2"}});
  EXPECT_EQ(closed().reason, "");
}

TEST_F(StepGatesTest, TheTurnOfTheLeaderIsDeferredOnceAndThenAnOperatorIsNotified) {
  begin_with({{"not-leader", 0}});
  EXPECT_TRUE(closed().deferred) << "n1 leads";
  EXPECT_EQ(open_alerts(), 0U);
  h_.run->state().stages.at("s").deferrals = 1;
  const auto again = closed();
  EXPECT_FALSE(again.deferred);
  EXPECT_NE(again.reason, "");
  ASSERT_EQ(open_alerts(), 1U);
  EXPECT_THAT(h_.run->state().alerts.front().reason, HasSubstr("its turn was put off once"));
}

TEST_F(StepGatesTest, AnAtomicStageIsNotPutOff) {
  begin_with({{"not-leader", 0}}, -1, /*atomic=*/true);
  EXPECT_FALSE(closed().deferred);
  ASSERT_EQ(open_alerts(), 1U);
  EXPECT_THAT(h_.run->state().alerts.front().reason,
              AllOf(HasSubstr("leads the cluster; move the leadership by hand"),
                    Not(HasSubstr("put off"))));
}

TEST_F(StepGatesTest, OneAlertIsRaisedForWhatIsClosedTooLongAndClearedOnceItIsNot) {
  begin_with({{"voters-alive", 0}});
  h_.cluster.node("n2").up = false;
  const auto seen = closed();
  gates_->track(step(), seen.reason, seen.gates);
  EXPECT_EQ(open_alerts(), 0U);
  wait(minutes(20));
  gates_->track(step(), seen.reason, seen.gates);
  gates_->track(step(), seen.reason, seen.gates);
  ASSERT_EQ(open_alerts(), 1U);
  EXPECT_THAT(h_.run->state().alerts.front().reason, HasSubstr("x-n1 has waited for"));
  gates_->track(step(), "another reason",
                nlohmann::json::array({{{"gate", "lag-below"}, {"node", "n3"}}}));
  EXPECT_EQ(open_alerts(), 0U);
}

TEST_F(StepGatesTest, WhatCannotBeInterruptedIsBegunOnlyWhereItFitsIntoItsWindow) {
  begin_with({{std::string(planner::kMaintenanceWindow), 0}}, 60'000);
  script_.can_interrupt = false;
  EXPECT_EQ(closed_in_a_window(minutes(2), minutes(60)).reason, "");
  const auto tight = closed_in_a_window(seconds(50), minutes(60));
  EXPECT_THAT(tight.fit.problem, HasSubstr("cannot be interrupted"));
  EXPECT_FALSE(tight.fit.never) << "the next window is long enough";
  EXPECT_TRUE(tight.only_hours);
  EXPECT_EQ(tight.gates.at(0).at("code"), "does-not-fit");
  EXPECT_TRUE(closed_in_a_window(seconds(50), seconds(55)).fit.never);
  script_.can_interrupt = true;
  EXPECT_EQ(closed_in_a_window(seconds(50), minutes(60)).reason, "");
}

TEST_F(StepGatesTest, OfUnknownLengthItFitsNowhere) {
  begin_with({{std::string(planner::kMaintenanceWindow), 0}});
  script_.can_interrupt = false;
  const auto seen = closed_in_a_window(minutes(600), minutes(601));
  EXPECT_TRUE(seen.fit.never);
  EXPECT_THAT(seen.reason, HasSubstr("how long it takes is not known"));
}

}  // namespace
}  // namespace verger::controller::detail
