#include "controller/executor/detail/permits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <set>

#include "planner/gate_table.h"
#include "tests/unit/controller_executor/scripted_step.h"

namespace verger::controller::detail {
namespace {

using std::chrono::seconds;

class PermitsTest : public ScriptedRun {
 protected:
  void begin_with(std::vector<planner::Gate> gates, bool agents = true) {
    h_.cluster.agents = agents;
    auto stage = stage_of_one();
    stage.groups.front().front().gates = std::move(gates);
    begin(std::move(stage));
    permits_.emplace(h_.run);
  }
  Result<void> permit() { return h_.wait_for(permits_->permit(context(), seconds(60))); }
  /// Nodes whose agents hold a permit that has not expired.
  std::set<std::string> holders() {
    std::set<std::string> out;
    for (const auto& node : h_.cluster.nodes) {
      for (const auto& [key, until] : node.permits) {
        EXPECT_EQ(key, "r1|" + context().attempt_name());
        if (until > h_.time.monotonic()) {
          out.insert(node.name);
        }
      }
    }
    return out;
  }
  using Names = std::set<std::string>;
  const std::vector<planner::Gate> all_agents_{{std::string(planner::kAgentsAnswer), 0}};
  std::optional<Permits> permits_;
};

TEST_F(PermitsTest, AllAgentsAreAskedForTheAttempt) {
  begin_with(all_agents_);
  ASSERT_TRUE(permit().has_value());
  EXPECT_EQ(holders(), (Names{"n1", "n2", "n3"}));
  EXPECT_EQ(h_.cluster.node("n2").highest_epoch, h_.run->parts().epoch.value());
}

TEST_F(PermitsTest, WhatRestoresItsNodeAsksTheAgentOfThatNodeAlone) {
  begin_with({{"cluster-identity", 0}});
  h_.cluster.node("n2").agent_up = false;
  ASSERT_TRUE(permit().has_value());
  EXPECT_EQ(holders(), (Names{"n1"}));
}

TEST_F(PermitsTest, ASkippedNodeIsQueriedForItsOwnStepsAlone) {
  begin_with(all_agents_);
  h_.run->record(events::kNodeSkipped, {{"node", "n1"}});
  h_.run->record(events::kNodeSkipped, {{"node", "n3"}});
  ASSERT_TRUE(permit().has_value());
  EXPECT_EQ(holders(), (Names{"n1", "n2"})) << "the step is n1's";
}

TEST_F(PermitsTest, ASilentAgentIsNamed) {
  begin_with(all_agents_);
  h_.cluster.node("n3").agent_up = false;
  const auto answer = permit();
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message, ::testing::StartsWith("n3: "));
}

TEST_F(PermitsTest, AnAgentThatKnowsANewerControllerRefuses) {
  begin_with(all_agents_);
  h_.cluster.node("n2").highest_epoch = h_.run->parts().epoch.value() + 1;
  const auto answer = permit();
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message, ::testing::StartsWith("n2: "));
}

TEST_F(PermitsTest, ALateRequestIsShutOutAtTheStepsOwnAgent) {
  begin_with(all_agents_);
  ASSERT_TRUE(permit().has_value());
  h_.cluster.node("n1").agent_up = false;
  EXPECT_FALSE(h_.wait_for(permits_->shut_out_late_request(context())));
  EXPECT_EQ(holders(), (Names{"n1", "n2", "n3"}));
  h_.cluster.node("n1").agent_up = true;
  EXPECT_TRUE(h_.wait_for(permits_->shut_out_late_request(context())));
  EXPECT_EQ(holders(), (Names{"n2", "n3"}));
}

TEST_F(PermitsTest, WithoutAgentsNoPermitIsRequested) {
  begin_with(all_agents_, false);
  EXPECT_TRUE(permit().has_value());
  EXPECT_TRUE(h_.wait_for(permits_->shut_out_late_request(context())));
  EXPECT_EQ(holders(), Names{});
}

}  // namespace
}  // namespace verger::controller::detail
