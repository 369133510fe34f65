#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/scavenge/scavenge_estimates.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ClusterSnapshot switchable(int voters = 3) {
  auto out = cluster(voters);
  for (auto& node : out.nodes) {
    node.agent->service_control = true;
    node.agent->online_problem.clear();
    node.agent->writer_checkpoint = std::int64_t{40} << 30U;
  }
  return out;
}

Policy with_strategy(Strategy strategy) {
  Policy out;
  scavenge_of(out).strategy = strategy;
  return out;
}
Policy online() { return with_strategy(Strategy::kOnline); }
Policy chosen_for_each() { return with_strategy(Strategy::kAuto); }

std::vector<std::string> rows(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& each : plan.forecast) {
    out.push_back(each.node + ": " + each.row);
  }
  return out;
}

TEST(PlanOnline, MakesThePointFirstAndStopsNoNode) {
  const auto plan = make_plan(switchable(), online());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan),
            "point-n2 | record-n1 | online-n2 | online-n3 | lower-n1, note-n1, resign-n1, "
            "start-n1, restore-n1 | check-n1 | online-n1 | digest-n2, digest-n3, digest-n1, "
            "compare-digests");
  const auto* step = plan->find_step("online-n2");
  EXPECT_EQ(step->kind, "online_scavenge");
  EXPECT_THAT(step->gates, Contains(Gate{"quorum-margin", 0}));
  EXPECT_TRUE(step->undo.empty());
  EXPECT_THAT(plan->notes, Contains(HasSubstr("interface of redactions")));
}

TEST(PlanOnline, TakesTheLeaderInPlaceWhereThePolicySaysSo) {
  auto policy = online();
  scavenge_of(policy).leader = LeaderRule::kInPlace;
  const auto plan = make_plan(switchable(), policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan),
            "point-n2 | record-n1 | online-n2 | online-n3 | online-n1 | digest-n2, digest-n3, "
            "digest-n1, compare-digests");
  for (const auto& gate : plan->find_step("online-n1")->gates) {
    EXPECT_NE(gate.name, "not-leader");
  }
}

TEST(PlanOnline, CarriesThreadsAndThrottleOfTheRole) {
  auto policy = online();
  scavenge_of(policy).throttle_percent = 50;
  scavenge_of(policy).leader_throttle_percent = 25;
  const auto plan = make_plan(switchable(), policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(*plan->find_step("online-n2")->parameters.at("throttlePercent").as_int(), 50);
  EXPECT_EQ(*plan->find_step("online-n1")->parameters.at("throttlePercent").as_int(), 25);
  const auto full = make_plan(switchable(), online());
  EXPECT_GT(plan->find_step("online-n2")->expected.low_ms,
            full->find_step("online-n2")->expected.low_ms);
}

TEST(PlanOnline, IsPossibleOnASingleNode) {
  const auto plan = make_plan(switchable(1), online());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), "point-n1 | online-n1");
}

TEST(PlanOnline, RefusesWhatANodeCannotDo) {
  auto snapshot = switchable();
  snapshot.nodes[0].agent->online_problem = "its Unix socket is not there";
  snapshot.nodes[1].version = "22.10.3";
  snapshot.nodes[2].agent_url.clear();
  snapshot.nodes[2].agent.reset();
  snapshot.nodes[2].agent_answered = false;
  const auto plan = make_plan(snapshot, online());
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(
      codes(plan.error()),
      ElementsAre("n1:online-not-possible", "n2:online-version-too-old", "n3:online-needs-agent"));
}

TEST(PlanOnline, From2410OnThePolicyMustSayThatTheInterfaceIsLicensed) {
  for (const auto* version : {"24.10.0", "25.1.2", "26.1.0"}) {
    auto snapshot = switchable();
    snapshot.nodes[1].version = version;
    const auto refused = make_plan(snapshot, online());
    ASSERT_FALSE(refused.has_value()) << version;
    EXPECT_THAT(codes(refused.error()), ElementsAre("n2:online-needs-licence")) << version;
    EXPECT_THAT(refused.error().front().hint, HasSubstr("redaction_interface_licensed: true"));
    auto consent = online();
    scavenge_of(consent).redaction_interface_licensed = true;
    EXPECT_TRUE(make_plan(snapshot, consent).has_value()) << version;
  }
}

TEST(PlanOnline, NoOtherStrategyTouchesTheInterface) {
  for (const auto strategy :
       {Strategy::kRolling, Strategy::kFollowersOnly, Strategy::kConcurrent, Strategy::kOffline}) {
    const auto plan = make_plan(switchable(), with_strategy(strategy));
    ASSERT_TRUE(plan.has_value());
    for (const auto& stage : plan->stages) {
      for (const auto& group : stage.groups) {
        for (const auto& step : group) {
          EXPECT_NE(step.kind, "online_scavenge") << to_string(strategy);
        }
      }
    }
  }
}

TEST(PlanAuto, ChoosesForEachNodeAndSaysWhy) {
  auto snapshot = switchable();
  snapshot.nodes[2].agent->online_problem = "its Unix socket is not there";
  with_points(snapshot, 3, {3, -1, -1});
  snapshot.nodes[0].agent->last_finished->position = (std::int64_t{40} << 30U) - 1'000'000;
  const auto plan = make_plan(snapshot, chosen_for_each());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan),
            "point-n1 | record-n3 | online-n2 | offline-n3 | lower-n1, note-n1, resign-n1, "
            "start-n1, restore-n1 | check-n1 | scavenge-n1 | digest-n2, digest-n3, digest-n1, "
            "compare-digests");
  EXPECT_THAT(rows(*plan),
              ElementsAre(HasSubstr("n2: online (40 GiB of log, never scavenged)"),
                          HasSubstr("n3: offline (40 GiB of log, never scavenged): there is much "
                                    "to do; not online: its Unix socket is not there"),
                          HasSubstr("n1: server (976.6 KiB of log since its last scavenge)")));
  EXPECT_THAT(plan->find_step("online-n2")->reason, HasSubstr("; online: there is much to do"));
  EXPECT_THAT(plan->find_step("scavenge-n1")->reason, HasSubstr("; server: less than 8 GiB"));
  EXPECT_THAT(plan->find_step("offline-n3")->gates, Contains(Gate{"quorum-margin", 1}));
  EXPECT_THAT(plan->find_step("online-n2")->gates, Contains(Gate{"quorum-margin", 0}));
  EXPECT_EQ(*plan->find_step("scavenge-n1")->parameters.at("target").as_string(), "shared");
  EXPECT_THAT(plan->notes,
              Contains(HasSubstr("stopped in turn while its files are scavenged: n3")));
}

TEST(PlanAuto, IsARollingScavengeWhereThereIsLittleToDo) {
  auto policy = chosen_for_each();
  scavenge_of(policy).server_below_bytes = std::int64_t{1} << 40U;
  const auto plan = make_plan(switchable(), policy);
  const auto rolling = make_plan(switchable(), Policy());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), outline(*rolling));
}

TEST(PlanAuto, GoesOfflineOnlyWhereTheClusterCanDoWithoutTheNode) {
  auto snapshot = switchable();
  for (auto& node : snapshot.nodes) {
    node.agent->online_problem = "its Unix socket is not there";
  }
  auto policy = chosen_for_each();
  scavenge_of(policy).leader = LeaderRule::kInPlace;
  const auto plan = make_plan(snapshot, policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(outline(*plan), AllOf(HasSubstr("offline-n2 | offline-n3 | scavenge-n1")));
  EXPECT_THAT(rows(*plan), Contains(HasSubstr("the cluster cannot do without it, or it leads")));

  auto pair = switchable(1);
  pair.nodes[0].agent->online_problem = "its Unix socket is not there";
  const auto single = make_plan(pair, chosen_for_each());
  ASSERT_TRUE(single.has_value());
  EXPECT_EQ(outline(*single), "scavenge-n1");
}

TEST(PlanAuto, WithoutConsentNewServersDoItThemselvesOrAreStopped) {
  auto snapshot = switchable();
  snapshot.nodes[1].version = snapshot.nodes[2].version = "24.10.1";
  snapshot.nodes[2].agent->service_control = false;
  const auto plan = make_plan(snapshot, chosen_for_each());
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(outline(*plan), AllOf(HasSubstr("offline-n2"), HasSubstr("scavenge-n3"),
                                    HasSubstr("online-n1"), Not(HasSubstr("online-n2"))));
}

ClusterSnapshot with_estimates(ClusterSnapshot snapshot, const ScavengeEstimates& estimates) {
  snapshot.preflight.emplace().facts = to_json(estimates);
  return snapshot;
}

TEST(PlanAuto, GoesByTheEstimateWhereAnAgentHasOne) {
  constexpr std::int64_t kGib = std::int64_t{1} << 30U;
  // 40 GiB of log were written on each since its last scavenge.
  const auto snapshot =
      with_estimates(switchable(), {{"n1", {.removed_bytes = kGib}},
                                    {"n2", {.problem = "it takes longer"}},
                                    {"n3", {.removed_bytes = 8 * kGib, .at_least = true}}});
  const auto plan = make_plan(snapshot, chosen_for_each());
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(outline(*plan),
              AllOf(HasSubstr("online-n2"), HasSubstr("online-n3"), HasSubstr("| scavenge-n1 |")));
  EXPECT_THAT(
      rows(*plan),
      ElementsAre(HasSubstr("n2: online (40 GiB of log, never scavenged; no estimate: it takes "
                            "longer): there is much to do"),
                  HasSubstr("n3: online (estimate: at least 8 GiB would go; 40 GiB of log"),
                  HasSubstr("n1: server (estimate: 1 GiB would go; 40 GiB of log, never "
                            "scavenged): less than 8 GiB would go by its agent's estimate")));
}

TEST(PlanAuto, MuchToRemoveCountsMoreThanLittleLog) {
  auto policy = chosen_for_each();
  scavenge_of(policy).server_below_bytes = std::int64_t{1} << 40U;  // more than there is log
  ScavengeEstimates estimates;
  for (const auto* node : {"n1", "n2", "n3"}) {
    estimates[node].removed_bytes = std::int64_t{1} << 41U;
  }
  const auto plan = make_plan(with_estimates(switchable(), estimates), policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(outline(*plan),
              AllOf(HasSubstr("online-n1"), HasSubstr("online-n2"), HasSubstr("online-n3")));
}

TEST(PlanAuto, NoOtherStrategyGoesByAnEstimate) {
  const auto snapshot = with_estimates(
      switchable(),
      {{"n1", {.removed_bytes = 0}}, {"n2", {.removed_bytes = 0}}, {"n3", {.removed_bytes = 0}}});
  EXPECT_EQ(make_plan(snapshot, online())->hash, make_plan(switchable(), online())->hash);
}

TEST(PlanAuto, EstimatesAreReadAsTheyWereWritten) {
  const ScavengeEstimates estimates{
      {"n1", {.removed_bytes = 5, .removed_records = 2, .at_least = true}},
      {"n2", {.problem = "its agent is of an older version"}}};
  EXPECT_EQ(read_scavenge_estimates(to_json(estimates)), estimates);
  EXPECT_TRUE(read_scavenge_estimates(Json()).empty());
  EXPECT_EQ(read_scavenge_estimates(Json::Object{{"n1", Json::Object{{"atLeast", "yes"}}}}),
            (ScavengeEstimates{{"n1", {}}}));
}

TEST(PlanAuto, TheHashDoesNotFollowTheSizes) {
  auto snapshot = switchable();
  const auto first = make_plan(snapshot, chosen_for_each());
  for (auto& node : snapshot.nodes) {
    node.agent->writer_checkpoint += 12'345'678;
  }
  EXPECT_EQ(make_plan(snapshot, chosen_for_each())->hash, first->hash);
  const auto counted = [](std::int64_t bytes) {
    return with_estimates(switchable(), {{"n1", {.removed_bytes = bytes}}});
  };
  EXPECT_EQ(make_plan(counted(5), chosen_for_each())->hash,
            make_plan(counted(6), chosen_for_each())->hash);
}

}  // namespace
}  // namespace verger::planner
