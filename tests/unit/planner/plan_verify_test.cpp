#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Policy verification() {
  Policy out;
  out.operation = VerifyPolicy();
  return out;
}

TEST(PlanVerify, LooksAtEveryNodeAndStopsNone) {
  auto snapshot = cluster();
  snapshot.nodes.push_back(node(4, Role::kReadOnlyReplica));
  const auto plan = make_plan(snapshot, verification());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), "verify-n1 | verify-n2 | verify-n3 | verify-n4");
  const auto* step = plan->find_step("verify-n1");
  EXPECT_EQ(step->kind, "verify");
  EXPECT_TRUE(step->undo.empty());
  EXPECT_EQ(*step->parameters.at("throttlePercent").as_int(), 50);
  EXPECT_THAT(step->gates, Contains(Gate{"no-scavenge-on-node", 0}));
  for (const auto& gate : step->gates) {
    EXPECT_NE(gate.name, "quorum-margin");
    EXPECT_NE(gate.name, "not-leader");
  }
  EXPECT_EQ(plan->stages.front().on_failure, FailureRule::kStop) << "not looked at is not sound";
}

TEST(PlanVerify, LooksAtTheNodesThatAreNamed) {
  auto policy = verification();
  verify_of(policy).nodes = " n3,n2 , n3";
  verify_of(policy).throttle_percent = 20;
  verify_of(policy).rate_bytes = 1'000'000;
  const auto plan = make_plan(cluster(), policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), "verify-n3 | verify-n2");
  EXPECT_EQ(*plan->find_step("verify-n3")->parameters.at("bytesPerSecond").as_int(), 1'000'000);
  verify_of(policy).nodes = "n2,n9";
  const auto refused = make_plan(cluster(), policy);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(codes(refused.error()), ElementsAre("unknown-node"));
}

TEST(PlanVerify, NamesTheNodesThatItCannotLookAt) {
  auto snapshot = cluster();
  snapshot.nodes[1].agent_url.clear();
  snapshot.nodes[1].agent.reset();
  snapshot.nodes[1].agent_answered = false;
  const auto plan = make_plan(snapshot, verification());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), "verify-n1 | verify-n3");
  EXPECT_THAT(plan->notes, Contains(HasSubstr("for want of an agent: n2")));
  without_agents(snapshot);
  const auto refused = make_plan(snapshot, verification());
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(codes(refused.error()), ElementsAre("no-agent"));
}

TEST(PlanVerify, RefusesLimitsThatAreNone) {
  auto policy = verification();
  verify_of(policy).throttle_percent = 0;
  EXPECT_FALSE(make_plan(cluster(), policy).has_value());
}

}  // namespace
}  // namespace verger::planner
