#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

#include "engine/base/digest.h"
#include "engine/base/random.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;

std::uint64_t seed_of_test() {
  const char* text = std::getenv("VERGER_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20'240'601;
}

ClusterSnapshot random_cluster(Random& random) {
  auto snapshot = cluster(static_cast<int>(1 + 2 * random.below(4)));
  const auto replicas = random.below(3);
  for (std::uint64_t i = 0; i < replicas; ++i) {
    snapshot.nodes.push_back(
        node(static_cast<int>(snapshot.nodes.size()) + 1, Role::kReadOnlyReplica));
  }
  const auto newest = static_cast<std::int64_t>(random.below(4)) - 1;
  std::vector<std::int64_t> reached;
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    reached.push_back(
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(newest + 2))) - 1);
  }
  with_points(snapshot, newest, reached);
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    auto& node = snapshot.nodes[i];
    node.writer_checkpoint -= static_cast<std::int64_t>(random.below(1'000'000));
    if (newest > reached[i] && random.below(3) == 0) {
      node.agent->unfinished = Unfinished{point(reached[i] + 1), "Accumulating"};
    }
    if (random.below(6) == 0) {
      node.agent_url.clear();
      node.agent.reset();
      node.agent_answered = false;
    }
    if (random.below(40) == 0) {
      node.scavenge_running = true;
    }
    if (random.below(40) == 0) {
      node.answered = false;
    }
  }
  return snapshot;
}

Policy random_policy(Random& random) {
  Policy policy;
  scavenge_of(policy).leader = random.below(4) == 0 ? LeaderRule::kInPlace : LeaderRule::kResign;
  scavenge_of(policy).strategy =
      random.below(5) == 0 ? Strategy::kFollowersOnly : Strategy::kRolling;
  scavenge_of(policy).read_only_replicas =
      random.below(3) == 0 ? ReplicaRule::kSkip : ReplicaRule::kInclude;
  return policy;
}

void check_plan(const ClusterSnapshot& snapshot, const Policy& policy, const Plan& plan) {
  ASSERT_EQ(hash_of(plan), plan.hash);
  const auto leader = snapshot.leader()->name;
  std::set<std::string> ids;
  std::vector<std::string> mains;
  int creators = 0;
  bool leader_moved = false;
  for (const auto& stage : plan.stages) {
    ASSERT_GT(stage.deadline_ms, 0);
    for (const auto& group : stage.groups) {
      std::set<std::string> voters;
      for (const auto& step : group) {
        ASSERT_TRUE(ids.insert(step.id).second) << "the id " << step.id << " is there twice";
        ASSERT_FALSE(step.reason.empty());
        const auto* node = snapshot.find(step.node);
        if (node != nullptr && !node->read_only_replica) {
          voters.insert(step.node);
        }
        if (step.kind == "resign" && stage.if_deferred.empty()) {
          ASSERT_EQ(step.node, leader);
          ASSERT_FALSE(leader_moved);
          leader_moved = true;
        }
        if (step.kind == "scavenge") {
          if (*step.parameters.at("target").as_string() == "new") {
            ++creators;
            ASSERT_TRUE(mains.empty());  // no node works to a point that is not there
            ASSERT_FALSE(*step.parameters.at("syncOnly").as_bool());
          } else {
            ASSERT_TRUE(*step.parameters.at("syncOnly").as_bool());
          }
          if (step.id.starts_with("scavenge-")) {
            mains.push_back(step.node);
          }
        }
      }
      ASSERT_LE(voters.size(), 1U) << "two voters at once in " << stage.id;
    }
  }
  ASSERT_EQ(creators, 1);
  ASSERT_EQ(std::set(mains.begin(), mains.end()).size(), mains.size()) << "a node twice";
  const auto found = std::ranges::find(mains, leader);
  if (scavenge_of(policy).strategy == Strategy::kFollowersOnly) {
    ASSERT_EQ(found, mains.end());
  } else {
    ASSERT_EQ(found, mains.end() - 1) << "the leader is not the last";
    ASSERT_EQ(leader_moved,
              scavenge_of(policy).leader == LeaderRule::kResign && snapshot.voters() > 1);
  }
}

TEST(PlanProperties, HoldForGeneratedClusters) {
  const auto seed = seed_of_test();
  SeededRandom random(seed);
  int planned = 0;
  int refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    SCOPED_TRACE(fmt::format("VERGER_SEED={} cluster {}", seed, i));
    const auto snapshot = random_cluster(random);
    const auto policy = random_policy(random);
    const auto plan = make_plan(snapshot, policy);

    auto permuted = snapshot;
    for (std::size_t k = permuted.nodes.size(); k > 1; --k) {
      std::swap(permuted.nodes[k - 1], permuted.nodes[random.below(k)]);
    }
    const auto again = make_plan(permuted, policy);
    ASSERT_EQ(plan.has_value(), again.has_value());
    if (!plan) {
      ++refused;
      ASSERT_FALSE(plan.error().empty());
      ASSERT_EQ(plan.error(), again.error());
      continue;
    }
    ++planned;
    ASSERT_EQ(text_of(*plan), text_of(*again));
    ASSERT_NO_FATAL_FAILURE(check_plan(snapshot, policy, *plan));
  }
  EXPECT_GT(planned, 1'000);
  EXPECT_GT(refused, 300);
}

TEST(PlanProperties, AThousandNodesArePlanned) {
  const auto snapshot = cluster(999);
  const auto plan = make_plan(snapshot, Policy{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_GE(plan->stages.size(), 999U);
  ASSERT_NO_FATAL_FAILURE(check_plan(snapshot, Policy{}, *plan));
}

}  // namespace
}  // namespace verger::planner
