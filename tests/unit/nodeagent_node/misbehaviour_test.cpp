// The switches that make an embedded node behave as badly as real ones were seen to.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

std::int32_t epoch_of(NodeCluster& cluster, std::size_t i) {
  return cluster.node(i)->inspection().positions().epoch_number.value();
}

TEST(Misbehaviour, LeadersThatGiveUpSoonTakeSeveralElections) {
  SimWorld world(1);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto first = *cluster.leader();
  const auto before = epoch_of(cluster, first);
  cluster.crash(first, false);  // the switches count from here on
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    cluster.options(i).misbehaviour.short_leads = 0;
  }
  ASSERT_TRUE(cluster.boot(first).has_value());
  ASSERT_TRUE(cluster.run_until_settled());

  for (std::size_t i = 0; i < cluster.size(); ++i) {
    cluster.crash(i, false);
    cluster.options(i).misbehaviour.short_leads = i == 0 ? 0 : 2;
    cluster.options(i).misbehaviour.short_lead = 200ms;
  }
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    ASSERT_TRUE(cluster.boot(i).has_value());
  }
  // Two nodes give the lead up twice each: it settles only after several elections.
  world.run_for(10s);
  ASSERT_TRUE(cluster.run_until_settled());
  const auto leader = *cluster.leader();
  EXPECT_GE(epoch_of(cluster, leader), before + 2);
  const auto settled = epoch_of(cluster, leader);
  world.run_for(5s);
  EXPECT_EQ(epoch_of(cluster, *cluster.leader()), settled) << "the switches are used up";
  EXPECT_EQ(cluster.append(leader, "s", "{}"), 201);
}

TEST(Misbehaviour, AResigningLeaderCanEndByItself) {
  SimWorld world(3);
  NodeClusterOptions options;
  options.node.misbehaviour.resignation_crashes = 1;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto leader = *cluster.leader();
  ASSERT_EQ(cluster.post(leader, "/admin/node/resign")->status, 200);
  ASSERT_TRUE(world.run_until([&] { return cluster.node(leader) == nullptr; }, 5s));
  cluster.crash(leader, false);  // as the program ends: with 1
  ASSERT_TRUE(cluster.run_until_settled());
  EXPECT_NE(*cluster.leader(), leader);
}

TEST(Misbehaviour, TheEndOfAScavengeIsReportedLateOrNever) {
  for (const bool never : {false, true}) {
    SCOPED_TRACE(never);
    SimWorld world(4);
    NodeClusterOptions options;
    options.voters = 1;
    options.node.misbehaviour.scavenge_end_delay = 8s;
    options.node.misbehaviour.lose_scavenge_end = never;
    NodeCluster cluster(world, options);
    cluster.boot_all();
    ASSERT_TRUE(cluster.run_until_settled());
    const auto started = cluster.post(0, "/admin/scavenge");
    ASSERT_EQ(started->status, 200);
    const auto is_shown = [&] {
      return cluster.get(0, "/streams/$scavenges?embed=body")->body.find("$scavengeCompleted") !=
             std::string::npos;
    };
    ASSERT_TRUE(world.run_until(
        [&] { return cluster.node(0)->inspection().last_finished_point().has_value(); }, 10s));
    world.run_for(5s);
    EXPECT_FALSE(is_shown());
    world.run_for(10s);
    EXPECT_EQ(is_shown(), !never);
  }
}

TEST(Node, GossipMayAskForCredentials) {
  for (const bool open : {true, false}) {
    SimWorld world(6);
    NodeClusterOptions options;
    options.voters = 1;
    options.node.insecure = false;
    options.node.override_anonymous_endpoint_access_for_gossip = open;
    NodeCluster cluster(world, options);
    ASSERT_TRUE(cluster.boot(0).has_value());
    world.run_for(2s);
    EXPECT_EQ(cluster.get(0, "/gossip")->status, open ? 200 : 401);
  }
}

TEST(Misbehaviour, AResignationCanBeWonByTheSameNode) {
  SimWorld world(2);
  NodeClusterOptions options;
  options.node.misbehaviour.wins_resignations = 2;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto leader = *cluster.leader();
  for (int resignation = 0; resignation < 2; ++resignation) {
    const auto before = epoch_of(cluster, leader);
    ASSERT_EQ(cluster.post(leader, "/admin/node/resign")->status, 200);
    ASSERT_TRUE(world.run_until(
        [&] {
          return cluster.settled() && cluster.leader() &&
                 epoch_of(cluster, *cluster.leader()) > before;
        },
        10s));
    EXPECT_EQ(*cluster.leader(), leader) << resignation;
    const auto gossip = nlohmann::json::parse(cluster.get(leader, "/gossip")->body);
    for (const auto& member : gossip["members"]) {
      EXPECT_EQ(member["nodePriority"], 0) << "what it was before";
    }
  }
}

TEST(Misbehaviour, AfterAStopARunIsThereAndNotForAWhile) {
  SimWorld world(4);
  NodeClusterOptions options;
  options.voters = 1;
  options.job_budget = Budget{1};
  options.node.misbehaviour.stop_lingers = 500ms;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_EQ(cluster.append(0, "s", "{}"), 201);
  ASSERT_EQ(cluster.post(0, "/admin/scavenge?throttlePercent=1")->status, 200);
  const auto stop = [&] {
    http::Request request{.method = "DELETE", .target = "/admin/scavenge/current"};
    return cluster.request(0, std::move(request))->status;
  };
  ASSERT_EQ(stop(), 200);
  EXPECT_EQ(stop(), 404);
  EXPECT_EQ(cluster.post(0, "/admin/scavenge")->body, "Scavenge is already running");
  const auto current = [&] {
    return nlohmann::json::parse(cluster.get(0, "/admin/scavenge/current")->body)["scavengeId"];
  };
  EXPECT_NE(current(), "");
  world.run_for(600ms);
  EXPECT_EQ(current(), "");
  EXPECT_EQ(cluster.post(0, "/admin/scavenge")->status, 200);
}

TEST(Misbehaviour, ALogIsCutOverTwoExits) {
  SimWorld world(3);
  NodeClusterOptions options;
  options.node.misbehaviour.exits_to_truncate = true;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto former = *cluster.leader();
  ASSERT_EQ(cluster.append(former, "s", "{}"), 201);
  ASSERT_TRUE(cluster.run_until_level());
  const auto one = (former + 1) % 3;
  const auto other = (former + 2) % 3;
  cluster.crash(one, false);
  cluster.crash(other, false);
  EXPECT_NE(cluster.append(former, "s", R"({"nobody":"else has it"})"), 201);
  cluster.crash(former, false);
  ASSERT_TRUE(cluster.boot(one).has_value());
  ASSERT_TRUE(cluster.boot(other).has_value());
  ASSERT_TRUE(cluster.run_until_settled(20s));
  ASSERT_EQ(cluster.append(*cluster.leader(), "s", R"({"after":true})"), 201);

  ASSERT_TRUE(cluster.boot(former).has_value());
  ASSERT_TRUE(world.run_until([&] { return cluster.times_ended(former) == 1; }, 20s))
      << "it ends, its log uncut";
  ASSERT_TRUE(cluster.boot(former).has_value());
  ASSERT_TRUE(world.run_until([&] { return cluster.times_ended(former) == 2; }, 20s))
      << "cut, and ended once more";
  ASSERT_TRUE(cluster.boot(former).has_value());
  ASSERT_TRUE(cluster.run_until_settled(20s));
  EXPECT_TRUE(cluster.run_until_level());
  EXPECT_EQ(cluster.times_ended(former), 2);
}

}  // namespace
}  // namespace verger::testing
