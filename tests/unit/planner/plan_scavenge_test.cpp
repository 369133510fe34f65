#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/gates.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string row_of(const Plan& plan, std::string_view node) {
  for (const auto& forecast : plan.forecast) {
    if (forecast.node == node) {
      return forecast.row;
    }
  }
  return "";
}

TEST(PlanScavenge, TakesFollowersFirstAndTheLeaderLastAfterItResigned) {
  const auto plan = make_plan(cluster(), Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan),
            "scavenge-n2 | record-n1 | scavenge-n3 | lower-n1, note-n1, resign-n1, restore-n1 | "
            "check-n1 | "
            "scavenge-n1 | digest-n2, digest-n3, digest-n1, compare-digests");
  EXPECT_EQ(*plan->find_step("scavenge-n2")->parameters.at("syncOnly").as_bool(), false);
  EXPECT_EQ(*plan->find_step("scavenge-n3")->parameters.at("syncOnly").as_bool(), true);
  EXPECT_EQ(*plan->find_step("scavenge-n1")->parameters.at("syncOnly").as_bool(), true);
  EXPECT_THAT(row_of(*plan, "n2"), HasSubstr("row 2"));
  EXPECT_THAT(row_of(*plan, "n3"), HasSubstr("row 4"));
}

TEST(PlanScavenge, ReadsLogsForDigestsAsGentlyAsItScavengesOneNodeAtATime) {
  Policy policy;
  scavenge_of(policy).throttle_percent = 40;
  scavenge_of(policy).leader_throttle_percent = 10;
  const auto plan = make_plan(cluster(), policy);
  ASSERT_TRUE(plan.has_value());
  for (const auto* id : {"record-n1", "digest-n1", "digest-n2", "compare-digests"}) {
    const auto* step = plan->find_step(id);
    ASSERT_NE(step, nullptr) << id;
    for (const auto* gate :
         {"maintenance-window", "lag-below", "disk-reserve", "no-scavenge-on-node"}) {
      EXPECT_THAT(step->gates, ::testing::Contains(::testing::Field(&Gate::name, gate))) << id;
    }
  }
  EXPECT_EQ(*plan->find_step("digest-n2")->parameters.at("throttlePercent").as_int(), 40);
  EXPECT_EQ(*plan->find_step("digest-n1")->parameters.at("throttlePercent").as_int(), 10);
  for (const auto& group : plan->stages.back().groups) {
    EXPECT_EQ(group.size(), 1U) << "one after the other";
  }
}

TEST(PlanScavenge, HoldsAMoveReadyForAFollowerThatComesToLead) {
  const auto plan = make_plan(cluster(), Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->stages[0].id, "move-n2");
  EXPECT_EQ(plan->stages[0].if_deferred, "scavenge-n2");
  EXPECT_EQ(plan->stages[0].on_failure, FailureRule::kUndoAll);
}

TEST(PlanScavenge, TakesTheMostLaggingFollowerLast) {
  auto snapshot = cluster(5);
  for (auto& node : snapshot.nodes) {
    node.writer_checkpoint = std::int64_t{100} << 20U;
  }
  snapshot.nodes[1].writer_checkpoint = std::int64_t{90} << 20U;  // n2
  snapshot.nodes[2].writer_checkpoint = std::int64_t{98} << 20U;  // n3
  Policy policy;
  scavenge_of(policy).compare_digests = false;
  const auto plan = make_plan(snapshot, policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan),
            "scavenge-n4 | scavenge-n5 | scavenge-n3 | scavenge-n2 | lower-n1, note-n1, resign-n1, "
            "restore-n1 | check-n1 | scavenge-n1");
}

TEST(PlanScavenge, LetsAFollowerThatIsDoneWithTheLatestPointCreateTheNewOne) {
  auto snapshot = cluster();
  with_points(snapshot, 4, {4, 2, 4});
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(outline(*plan), ::testing::StartsWith("scavenge-n3 | record-n1 | scavenge-n2"));
  EXPECT_EQ(*plan->find_step("scavenge-n3")->parameters.at("target").as_string(), "new");
  EXPECT_THAT(row_of(*plan, "n3"), HasSubstr("row 6"));
  EXPECT_THAT(row_of(*plan, "n2"), HasSubstr("row 5"));
}

TEST(PlanScavenge, LowersTheLeaderBelowEveryOtherVoter) {
  auto snapshot = cluster();
  snapshot.nodes[2].priority = -5;
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(*plan->find_step("lower-n1")->parameters.at("priority").as_int(), -6);
  EXPECT_EQ(*plan->find_step("restore-n1")->parameters.at("priority").as_int(), 0);
}

TEST(PlanScavenge, FinishesOlderPointsAsStepsOfTheirOwn) {
  auto snapshot = cluster();
  with_points(snapshot, 4, {4, 2, 4});
  snapshot.nodes[1].agent->unfinished = Unfinished{point(3), "Calculating"};
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(outline(*plan),
              ::testing::StartsWith("scavenge-n3 | record-n1 | finish-n2, scavenge-n2"));
  EXPECT_EQ(*plan->find_step("finish-n2")->parameters.at("point").as_int(), 3);
  EXPECT_THAT(row_of(*plan, "n2"), HasSubstr("row 1 (resumes point 3 at Calculating)"));
}

TEST(PlanScavenge, LetsACreatorAdoptTheLatestPointFirstWhenNoNodeIsDoneWithIt) {
  auto snapshot = cluster();
  with_points(snapshot, 1, {-1, 0, -1});
  snapshot.nodes[1].agent->unfinished = Unfinished{point(0), "Cleaning"};
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(outline(*plan), ::testing::StartsWith("finish-n2, adopt-n2, scavenge-n2 |"));
  EXPECT_EQ(*plan->find_step("adopt-n2")->parameters.at("point").as_int(), 1);
}

TEST(PlanScavenge, ClaimsNothingThatNeedsAgentsWhereThereAreNone) {
  auto snapshot = cluster();
  without_agents(snapshot);
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(
      outline(*plan),
      "finish-n2, adopt-n2, scavenge-n2 | finish-n3, scavenge-n3 | lower-n1, note-n1, resign-n1, "
      "restore-n1 | check-n1 | finish-n1, scavenge-n1");
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("no agent on n2, n3, n1")));
  EXPECT_THAT(row_of(*plan, "n2"), HasSubstr("then one creates the new point"));
  EXPECT_THAT(row_of(*plan, "n3"), HasSubstr("then one takes the new point"));
  EXPECT_THAT(row_of(*plan, "n3"), HasSubstr("cannot be seen"));
}

TEST(PlanScavenge, TreatsReplicasAsThePolicySays) {
  auto snapshot = cluster();
  snapshot.nodes.push_back(node(4, Role::kReadOnlyReplica));
  Policy policy;
  scavenge_of(policy).compare_digests = false;
  EXPECT_EQ(outline(*make_plan(snapshot, policy)),
            "scavenge-n2 | scavenge-n3 | scavenge-n4 | lower-n1, note-n1, resign-n1, restore-n1 | "
            "check-n1 | "
            "scavenge-n1");
  scavenge_of(policy).read_only_replicas = ReplicaRule::kSkip;
  EXPECT_EQ(outline(*make_plan(snapshot, policy)),
            "scavenge-n2 | scavenge-n3 | lower-n1, note-n1, resign-n1, restore-n1 | check-n1 | "
            "scavenge-n1");
}

TEST(PlanScavenge, ScavengesASingleNodeWhileItLeads) {
  const auto plan = make_plan(cluster(1), Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan), "scavenge-n1");
  EXPECT_EQ(*plan->find_step("scavenge-n1")->parameters.at("target").as_string(), "new");
}

TEST(PlanScavenge, LeavesTheLeaderOutOnRequest) {
  Policy policy;
  scavenge_of(policy).strategy = Strategy::kFollowersOnly;
  const auto plan = make_plan(cluster(), policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(outline(*plan),
            "scavenge-n2 | record-n3 | scavenge-n3 | digest-n2, digest-n3, compare-digests");
}

struct RefusalCase {
  std::string name;
  void (*spoil)(ClusterSnapshot&);
  std::vector<std::string> expected;
};

class Refuses : public ::testing::TestWithParam<RefusalCase> {};

TEST_P(Refuses, SayingWhy) {
  auto snapshot = cluster();
  GetParam().spoil(snapshot);
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_FALSE(plan.has_value()) << outline(*plan);
  EXPECT_EQ(codes(plan.error()), GetParam().expected);
  for (const auto& refusal : plan.error()) {
    EXPECT_FALSE(refusal.message.empty());
    EXPECT_FALSE(refusal.hint.empty());
  }
}

const RefusalCase kRefusals[] = {
    {"ANodeIsDown",
     [](ClusterSnapshot& c) {
       c.nodes[2].answered = false;
       c.nodes[2].alive = false;
       c.nodes[2].role = Role::kOther;
     },
     {"n1:quorum-margin", "n2:quorum-margin", "n3:node-down"}},
    {"APeerCallsItDead",
     [](ClusterSnapshot& c) { c.nodes[0].sees_dead = {"n3"}; },
     {"n3:node-down"}},
    {"AScavengeRuns",
     [](ClusterSnapshot& c) {
       c.nodes[1].scavenge_running = true;
       c.nodes[1].running.scavenge_id = "abc";
     },
     {"n2:scavenge-running"}},
    {"WhetherOneRunsIsNotKnown",
     [](ClusterSnapshot& c) { c.nodes[1].scavenge_running.reset(); },
     {"n2:scavenge-unknown"}},
    {"AFollowerLags",
     [](ClusterSnapshot& c) { c.nodes[0].writer_checkpoint = std::int64_t{1} << 40U; },
     {"n2:lag", "n3:lag"}},
    {"AnEpochDiffers",
     [](ClusterSnapshot& c) { c.nodes[1].epoch_number = 2; },
     {"n2:epoch-differs"}},
    {"TheDiskIsTooSmall",
     [](ClusterSnapshot& c) { c.nodes[1].agent->disk_free = std::int64_t{300} << 20U; },
     {"n2:disk"}},
    {"AutoScavengeIsScheduled",
     [](ClusterSnapshot& c) { c.nodes[0].auto_scavenge = AutoScavenge::kWaiting; },
     {"n1:auto-scavenge-active"}},
    {"AutoScavengeCannotBeSeenOnAServerThatHasIt",
     [](ClusterSnapshot& c) {
       c.nodes[0].auto_scavenge = AutoScavenge::kUnknown;
       c.nodes[0].version = "24.10.1";
     },
     {"n1:auto-scavenge-active"}},
    {"ItIsAnotherCluster",
     [](ClusterSnapshot& c) { c.wrong_cluster = "another database"; },
     {"wrong-cluster"}},
    {"ItIsAnotherNode",
     [](ClusterSnapshot& c) { c.nodes[2].wrong_identity = true; },
     {"n3:wrong-node"}},
    {"TheOnlyLeaderIsAnotherNode",
     [](ClusterSnapshot& c) { c.nodes[0].wrong_identity = true; },
     {"no-leader", "n1:wrong-node"}},
    {"AnotherNodeLeadsItselfBesideTheLeader",
     [](ClusterSnapshot& c) {
       c.nodes[2].wrong_identity = true;
       c.nodes[2].role = Role::kLeader;
     },
     {"n3:wrong-node"}},
    {"AMemberIsNotRegistered",
     [](ClusterSnapshot& c) { c.unregistered = {"10.0.0.9:2113"}; },
     {"unregistered-member"}},
    {"NobodyLeads",
     [](ClusterSnapshot& c) {
       c.nodes[0].role = Role::kOther;
       c.nodes[0].state = "Unknown";
     },
     {"no-leader", "n1:node-unsettled", "n2:quorum-margin", "n3:quorum-margin"}},
    {"TwoLead", [](ClusterSnapshot& c) { c.nodes[1].role = Role::kLeader; }, {"several-leaders"}},
    {"AFollowerSeesAnotherLeader",
     [](ClusterSnapshot& c) { c.nodes[1].sees_leader = "x"; },
     {"n2:leader-disputed"}},
    {"AnAgentIsGone",
     [](ClusterSnapshot& c) { c.nodes[1].agent_answered = false; },
     {"n2:agent-gone"}},
    {"AnAgentGetsNoAnswerOfItsNode",
     [](ClusterSnapshot& c) {
       c.nodes[1].agent_answered = true;
       c.nodes[1].agent.reset();
     },
     {"n2:agent-without-node"}},
    {"TheVersionHasNoPoints",
     [](ClusterSnapshot& c) { c.nodes[1].version = "21.10.11"; },
     {"n2:version-too-old"}},
    {"EverythingAtOnce",
     [](ClusterSnapshot& c) {
       c.nodes[0].auto_scavenge = AutoScavenge::kInProgress;
       c.nodes[1].scavenge_running = true;
       c.nodes[2].agent->disk_free = 0;
     },
     {"n1:auto-scavenge-active", "n2:scavenge-running", "n3:disk"}},
};

INSTANTIATE_TEST_SUITE_P(PlanScavenge, Refuses, ::testing::ValuesIn(kRefusals),
                         [](const auto& each) { return each.param.name; });

TEST(PlanScavenge, RefusesAWrongPolicy) {
  Policy policy;
  scavenge_of(policy).threads = 5;
  scavenge_of(policy).throttle_percent = 50;
  const auto plan = make_plan(cluster(), policy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()), ElementsAre("policy-invalid", "policy-invalid"));
}

TEST(PlanScavenge, ExpectsAThrottledOneToTakeLongerThanThePastDid) {
  Policy policy;
  scavenge_of(policy).throttle_percent = 25;
  scavenge_of(policy).leader_throttle_percent = 100;
  const History history{{{"n1", "scavenge", 80'000, 50}, {"n2", "scavenge", 80'000, 50}}};
  const auto plan = make_plan(cluster(), policy, history);
  const auto unthrottled = make_plan(cluster(), Policy{});
  ASSERT_TRUE(plan && unthrottled);
  const auto expected = [](const Plan& of, std::string_view step) {
    return of.find_step(step)->expected;
  };
  EXPECT_EQ(expected(*plan, "scavenge-n1").low_ms, 40'000) << "the leader works all the time";
  EXPECT_EQ(expected(*plan, "scavenge-n2").low_ms, 160'000);
  EXPECT_EQ(expected(*plan, "scavenge-n2").high_ms, 200'000);
  EXPECT_EQ(expected(*plan, "scavenge-n3").low_ms / 4, expected(*unthrottled, "scavenge-n3").low_ms)
      << "without a history, from its size";
}

TEST(PlanScavenge, TellsWhatToDoAboutANodeThatCouldNotBeAsked) {
  auto snapshot = cluster();
  snapshot.nodes[1].answered = false;
  snapshot.nodes[1].problem = "credentials \"ops\": no such file";
  snapshot.nodes[1].remedy = "put that file there";
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_FALSE(plan.has_value());
  std::vector<std::string> hints;
  for (const auto& refusal : plan.error()) {
    if (refusal.code == "node-down") {
      hints.push_back(refusal.hint);
    }
  }
  EXPECT_THAT(hints, ElementsAre("put that file there"));
}

TEST(PlanHash, LeavesTimesPositionsAndEstimatesOut) {
  const auto plan = make_plan(cluster(), Policy{});
  auto later = cluster();
  later.taken_at = Ticks(later.taken_at.value() + 1'000'000);
  for (auto& node : later.nodes) {
    node.writer_checkpoint += 4'096;
    node.agent->database_bytes += 100'000;
  }
  const auto again = make_plan(later, Policy{}, History{{{"n2", "scavenge", 90'000}}});
  ASSERT_TRUE(plan && again);
  EXPECT_EQ(plan->hash, again->hash);
  EXPECT_NE(text_of(*plan), text_of(*again));
  EXPECT_EQ(plan->hash.size(), 64U);
}

TEST(PlanHash, CoversPolicyAndBasis) {
  const auto plan = make_plan(cluster(), Policy{});
  Policy policy;
  scavenge_of(policy).threshold = 10;
  EXPECT_NE(plan->hash, make_plan(cluster(), policy)->hash);
  auto other = cluster();
  other.nodes[1].version = "24.6.1";
  EXPECT_NE(plan->hash, make_plan(other, Policy{})->hash);
}

TEST(DiffBasis, SaysWhatChanged) {
  auto before = cluster();
  auto after = cluster();
  EXPECT_THAT(diff_basis(basis_of(before), basis_of(after)), IsEmpty());
  after.nodes[0].role = Role::kFollower;
  after.nodes[1].role = Role::kLeader;
  after.nodes[2].instance_id = "other";
  after.nodes.push_back(node(4));
  EXPECT_THAT(
      diff_basis(basis_of(before), basis_of(after)),
      ElementsAre("n1: role was leader, is follower", "n2: role was follower, is leader",
                  "n3: instance (it restarted) was instance-3, is other", "n4: is a new member"));
}

TEST(Gates, AnUnknownOneIsClosed) {
  const auto states = evaluate(Gate{"moon-phase", 0}, cluster(), "n1");
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].verdict, GateVerdict::kClosed);
}

TEST(Gates, WaitForTheElectionToSettle) {
  auto snapshot = cluster();
  snapshot.leader_stable_ms = 9'999;
  EXPECT_EQ(evaluate({"leader-settled", 10'000}, snapshot, "")[0].verdict, GateVerdict::kClosed);
  snapshot.leader_stable_ms = 10'000;
  EXPECT_EQ(evaluate({"leader-settled", 10'000}, snapshot, "")[0].verdict, GateVerdict::kOpen);
}

}  // namespace
}  // namespace verger::planner
