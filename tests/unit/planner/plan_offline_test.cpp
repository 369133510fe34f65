#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClusterSnapshot stoppable(int voters = 3) {
  auto out = cluster(voters);
  for (auto& node : out.nodes) {
    node.agent->service_control = true;
  }
  return out;
}

Policy offline() {
  Policy out;
  scavenge_of(out).strategy = Strategy::kOffline;
  return out;
}

TEST(PlanOffline, MakesThePointFirstAndStopsOneNodeAtATimeTheLeaderLast) {
  const auto plan = make_plan(stoppable(), offline());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(
      outline(*plan),
      "point-n2 | record-n1 | offline-n2 | offline-n3 | lower-n1, note-n1, resign-n1, start-n1, "
      "restore-n1 | check-n1 | offline-n1 | digest-n2, digest-n3, digest-n1, "
      "compare-digests");
  EXPECT_EQ(*plan->find_step("point-n2")->parameters.at("point").as_int(), -1);
  const auto* step = plan->find_step("offline-n2");
  EXPECT_THAT(step->gates, Contains(Gate{"quorum-margin", 1}));
  EXPECT_THAT(step->undo, HasSubstr("start n2"));
  for (const auto& stage : plan->stages) {
    if (stage.id.starts_with("scavenge-")) {
      EXPECT_EQ(stage.on_failure, FailureRule::kUndoAll) << "a node must not stay stopped";
      EXPECT_EQ(stage.groups.size(), 1U);
      EXPECT_EQ(stage.groups.front().size(), 1U);
    }
  }
}

TEST(PlanOffline, ExpectsTheStopAndStartOfTheServerToo) {
  const auto plan = make_plan(stoppable(), offline());
  ASSERT_TRUE(plan.has_value());
  const auto* step = plan->find_step("offline-n2");
  ASSERT_NE(step, nullptr);
  EXPECT_GE(step->expected.low_ms, 20'000);
  EXPECT_GE(step->expected.high_ms, 300'000);
  const History seen{{{"n2", "offline_scavenge", 40'000, 100}}};
  const auto later = make_plan(stoppable(), offline(), seen);
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->find_step("offline-n2")->expected.high_ms, 50'000) << "it has them already";
}

TEST(PlanOffline, CarriesThePolicysDeadlineForTheServer) {
  auto policy = offline();
  policy.limits.service_deadline_ms = 600'000;
  const auto plan = make_plan(stoppable(), policy);
  ASSERT_TRUE(plan.has_value());
  const auto& parameters = plan->find_step("offline-n2")->parameters;
  ASSERT_TRUE(parameters.contains("serviceDeadlineMs"));
  EXPECT_EQ(*parameters.find("serviceDeadlineMs")->second.as_int(), 600'000);
  policy.limits.service_deadline_ms = 0;
  EXPECT_FALSE(make_plan(stoppable(), policy).has_value());
}

TEST(PlanOffline, TakesAPointThatNoNodeHasReached) {
  auto snapshot = stoppable();
  with_points(snapshot, 2, {1, 1, -1});
  const auto plan = make_plan(snapshot, offline());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(*plan->find_step("point-n2")->parameters.at("point").as_int(), 2);
}

TEST(PlanOffline, LetsANodeThatIsDoneWithTheLatestPointMakeTheNext) {
  auto snapshot = stoppable();
  with_points(snapshot, 2, {2, 1, 1});
  const auto plan = make_plan(snapshot, offline());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan).substr(0, 8), "point-n1") << "the leader, for no node is stopped for it";
  EXPECT_EQ(*plan->find_step("point-n1")->parameters.at("point").as_int(), -1);
}

TEST(PlanOffline, RefusesWhatAnAgentWouldBeNeededFor) {
  auto snapshot = stoppable();
  snapshot.nodes[1].agent->service_control = false;
  snapshot.nodes[0].agent->offline_problem = "/db is the user eventstore's";
  snapshot.nodes[2].agent_url.clear();
  snapshot.nodes[2].agent.reset();
  snapshot.nodes[2].agent_answered = false;
  const auto plan = make_plan(snapshot, offline());
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()),
              ElementsAre("n1:offline-wrong-user", "n2:offline-needs-service-control",
                          "n3:offline-needs-agent"));
}

TEST(PlanOffline, RefusesToTakeAClusterDown) {
  for (const int voters : {1, 2}) {
    const auto plan = make_plan(stoppable(voters), offline());
    ASSERT_FALSE(plan.has_value()) << voters;
    EXPECT_THAT(codes(plan.error()), Contains(HasSubstr("quorum-margin"))) << voters;
    const auto* counted = voters == 1 ? "there is 1 voter:" : "there are 2 voters:";
    EXPECT_THAT(plan.error(), Contains(::testing::Field(&Refusal::message, HasSubstr(counted))));
    const auto* hint = voters == 1 ? "has no other voter" : "bring the other voters up";
    EXPECT_THAT(plan.error(), Contains(::testing::Field(&Refusal::hint, HasSubstr(hint))));
  }
  auto policy = offline();
  scavenge_of(policy).leader = LeaderRule::kInPlace;
  const auto plan = make_plan(stoppable(), policy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()), Contains("policy-invalid"));
}

}  // namespace
}  // namespace verger::planner
