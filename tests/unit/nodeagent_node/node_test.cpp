#include "nodeagent/node/node.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

NodeClusterOptions alone() {
  NodeClusterOptions options;
  options.voters = 1;
  return options;
}

TEST(SingleNode, LeadsItselfAndKeepsWhatWasAppendedOverAPowerCut) {
  SimWorld world(1);
  NodeCluster cluster(world, alone());
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_EQ(cluster.append(0, "ledger", R"({"n":1})"), 201);
  ASSERT_EQ(cluster.append(0, "ledger", R"({"n":2})"), 201);
  cluster.crash(0);
  const auto booted = cluster.boot(0);
  ASSERT_TRUE(booted.has_value()) << booted.error().message;
  ASSERT_TRUE(cluster.run_until_settled());
  const auto page = cluster.get(0, "/streams/ledger?embed=body");
  ASSERT_TRUE(page.has_value()) << page.error().message;
  ASSERT_EQ(page->status, 200) << page->body;
  const auto feed = json::parse(page->body);
  ASSERT_EQ(feed["entries"].size(), 2U);
  EXPECT_EQ(feed["entries"][0]["data"], R"({"n":2})");
}

TEST(SingleNode, ElectsItselfAgainAfterResigning) {
  SimWorld world(2);
  NodeCluster cluster(world, alone());
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto before = cluster.node(0)->inspection().positions().epoch_number;
  EXPECT_EQ(cluster.post(0, "/admin/node/resign")->status, 200);
  world.run_for(50ms);
  ASSERT_TRUE(cluster.run_until_settled());
  EXPECT_GT(cluster.node(0)->inspection().positions().epoch_number, before);
}

TEST(Cluster, ThreeNodesElectALeaderAndReplicateToAll) {
  SimWorld world(3);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  for (int i = 0; i < 20; ++i) {
    // Also where it is not the leader: such writes are forwarded.
    ASSERT_EQ(cluster.append(static_cast<std::size_t>(i) % 3, "ledger", std::to_string(i)), 201);
  }
  ASSERT_TRUE(cluster.run_until_level());
  const auto id = cluster.node(0)->inspection().database_id();
  EXPECT_EQ(id.size(), 36U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster.node(i)->inspection().database_id(), id);
    const auto page = cluster.get(i, "/streams/ledger?embed=body");
    ASSERT_TRUE(page.has_value());
    const auto feed = json::parse(page->body);
    ASSERT_EQ(feed["entries"].size(), 20U) << i;
    EXPECT_EQ(feed["entries"][0]["data"], "19");
  }
}

TEST(Cluster, ChaserCheckpointsFollowWhatIsCommittedAtOnce) {
  SimWorld world(31);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_EQ(cluster.append(*cluster.leader(), "ledger", R"({"n":1})"), 201);
  ASSERT_TRUE(cluster.run_until_level());
  world.run_for(2 * cluster.options(0).timings.tick);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    const auto stored =
        read_file(cluster.host(i).disk(), cluster.options(i).database / "chaser.chk");
    ASSERT_TRUE(stored) << stored.error().message;
    EXPECT_EQ(load_le<std::int64_t>(stored->data()),
              cluster.node(i)->inspection().positions().committed.value());
  }
  world.run_for(1100ms);  // now they are synced, too
  cluster.host(0).disk().reset_count();
  world.run_for(5s);
  EXPECT_EQ(cluster.host(0).disk().operation_count(), 0U) << "an idle node writes nothing";
}

TEST(Cluster, ADeadLeaderIsReplacedAndNothingAcknowledgedIsLost) {
  SimWorld world(4);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto old = *cluster.leader();
  ASSERT_EQ(cluster.append(old, "ledger", "1"), 201);
  cluster.crash(old);
  ASSERT_TRUE(cluster.run_until_settled(1s));
  const auto fresh = *cluster.leader();
  ASSERT_NE(fresh, old);
  ASSERT_EQ(cluster.append(fresh, "ledger", "2"), 201);
  ASSERT_TRUE(cluster.boot(old).has_value());
  ASSERT_TRUE(cluster.run_until_level());
  const auto page = cluster.get(old, "/streams/ledger?embed=body");
  EXPECT_EQ(json::parse(page->body)["entries"].size(), 2U);
}

TEST(Cluster, AnEmptyFollowerCatchesUpOverManyChunks) {
  SimWorld world(5);
  NodeCluster cluster(world);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(cluster.boot(i).has_value());
  }
  ASSERT_TRUE(cluster.run_until_settled());
  const std::string large(9000, 'x');
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(cluster.append(*cluster.leader(), "big", "\"" + large + "\""), 201);
  }
  ASSERT_TRUE(cluster.boot(2).has_value());
  ASSERT_TRUE(cluster.run_until_level());
  EXPECT_GT(cluster.node(2)->inspection().chunks().file_count, 4);
}

TEST(Cluster, AMinorityTakesNoWritesAndItsUncommittedRecordsGo) {
  SimWorld world(6);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_EQ(cluster.append(0, "ledger", "1"), 201);
  ASSERT_TRUE(cluster.run_until_level());
  const auto old = *cluster.leader();
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != old) {
      world.cut("n" + std::to_string(old + 1), "n" + std::to_string(i + 1));
    }
  }
  // The old leader has it on its own disk alone: no client may see it, then or later.
  EXPECT_NE(cluster.append(old, "lost", "1"), 201);
  EXPECT_EQ(cluster.get(old, "/streams/lost")->status, 404);
  world.run_for(500ms);
  const auto fresh = cluster.leader();
  ASSERT_TRUE(fresh.has_value());
  ASSERT_NE(*fresh, old);
  ASSERT_EQ(cluster.append(*fresh, "ledger", "2"), 201);
  world.heal();
  ASSERT_TRUE(cluster.run_until_level());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster.get(i, "/streams/lost")->status, 404) << i;
    EXPECT_EQ(json::parse(cluster.get(i, "/streams/ledger")->body)["entries"].size(), 2U) << i;
  }
}

TEST(Cluster, AResigningLeaderOfLowPriorityHandsOver) {
  SimWorld world(7);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_level());
  for (int round = 0; round < 3; ++round) {
    const auto old = *cluster.leader();
    ASSERT_EQ(cluster.post(old, "/admin/node/priority/-1")->status, 200);
    world.run_for(200ms);
    ASSERT_TRUE(cluster.run_until_level());
    ASSERT_EQ(cluster.post(old, "/admin/node/resign")->status, 200);
    world.run_for(100ms);
    ASSERT_TRUE(cluster.run_until_level());
    EXPECT_NE(*cluster.leader(), old) << round;
    ASSERT_EQ(cluster.post(old, "/admin/node/priority/0")->status, 200);
  }
}

TEST(Cluster, AReadOnlyReplicaFollowsAndForwardsButDoesNotCount) {
  SimWorld world(8);
  NodeClusterOptions options;
  options.replicas = 1;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_EQ(cluster.append(3, "ledger", "1"), 201);
  ASSERT_TRUE(cluster.run_until_level());
  const auto leader = *cluster.leader();
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != leader) {
      cluster.crash(i);
    }
  }
  world.run_for(10ms);
  EXPECT_NE(cluster.append(leader, "ledger", "2"), 201);
}

}  // namespace
}  // namespace verger::testing
