#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/operation.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// n1 leads; `lost` streams of each node.
ClusterSnapshot with_lost(const std::vector<std::int64_t>& lost) {
  auto out = cluster();
  for (std::size_t i = 0; i < out.nodes.size(); ++i) {
    out.nodes[i].agent->service_control = true;
    out.nodes[i].agent->lost_streams = lost[i];
  }
  return out;
}

Policy healing(std::string nodes = {}) {
  Policy out;
  HealPolicy heal;
  heal.nodes = std::move(nodes);
  out.operation = heal;
  return out;
}

TEST(PlanHeal, RestartsTheNodesThatHaveLostStreams) {
  const auto plan = make_plan(with_lost({0, 0, 82}), healing());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), "heal-n3");
  const auto* step = plan->find_step("heal-n3");
  EXPECT_EQ(step->kind, "heal_filter");
  EXPECT_THAT(step->gates, Contains(Gate{"quorum-margin", 1}));
  EXPECT_THAT(step->undo, HasSubstr("start n3"));
  EXPECT_EQ(plan->stages.back().on_failure, FailureRule::kUndoAll) << "it must not stay stopped";
  EXPECT_THAT(plan->forecast.front().row, HasSubstr("has lost 82 streams"));
}

TEST(PlanHeal, TakesTheLeaderLastAfterItResigned) {
  const auto plan = make_plan(with_lost({5, 1, 1}), healing());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan),
            "heal-n2 | heal-n3 | lower-n1, note-n1, resign-n1, start-n1, restore-n1 | check-n1 | "
            "heal-n1");
}

TEST(PlanHeal, HealsWhatIsNamedWhateverItsAgentCounts) {
  const auto plan = make_plan(with_lost({0, -1, 82}), healing("n2"));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), "heal-n2");
  EXPECT_THAT(codes(make_plan(with_lost({0, 0, 0}), healing("n7")).error()),
              Contains("unknown-node"));
}

TEST(PlanHeal, HasNothingToDoWhereNothingIsLost) {
  const auto plan = make_plan(with_lost({0, 0, -1}), healing());
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()), ElementsAre("nothing-to-heal"));
  const auto& need = *HealPolicy::operation().need;
  EXPECT_THAT(need(with_lost({0, 0, -1}), healing()).not_yet, HasSubstr("no node's agent"));
  EXPECT_EQ(need(with_lost({0, 0, 3}), healing()).not_yet, "");
}

TEST(PlanHeal, IsRefusedWhereTheNodeCannotBeStopped) {
  auto snapshot = with_lost({0, 0, 82});
  snapshot.nodes[1].agent->service_control = false;  // is left alone
  EXPECT_TRUE(make_plan(snapshot, healing()).has_value());
  snapshot.nodes[2].agent->service_control = false;
  const auto plan = make_plan(snapshot, healing());
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()), ElementsAre("n3:offline-needs-service-control"));
  EXPECT_THAT(plan.error().front().hint, HasSubstr("streamExistenceFilter.chk"));
}

}  // namespace
}  // namespace verger::planner
