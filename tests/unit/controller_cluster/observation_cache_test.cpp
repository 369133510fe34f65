#include "controller/cluster/observation_cache.h"

#include <gtest/gtest.h>

namespace verger::controller {
namespace {

using std::chrono::seconds;

planner::ClusterSnapshot cluster(std::int64_t lag) {
  planner::ClusterSnapshot out;
  out.cluster = "prod";
  for (int i = 1; i <= 2; ++i) {
    planner::NodeSnapshot node;
    node.name = i == 1 ? "n1" : "n2";
    node.instance_id = node.name;
    node.answered = node.alive = true;
    node.role = i == 1 ? planner::Role::kLeader : planner::Role::kFollower;
    node.epoch_number = 4;
    node.writer_checkpoint = i == 1 ? 1'000'000 : 1'000'000 - lag;
    out.nodes.push_back(std::move(node));
  }
  return out;
}

TEST(ClusterMemory, TellsTheLagOfSomeSecondsAgo) {
  ObservationCache cache;
  const auto look = [&cache](seconds at, std::int64_t lag) {
    auto snapshot = cluster(lag);
    cache.compare(snapshot, Monotonic(at));
    return snapshot;
  };
  EXPECT_EQ(look(seconds(100), 500).nodes[1].lag_before, -1) << "the first look";
  EXPECT_EQ(look(seconds(103), 400).nodes[1].lag_before, -1) << "too short ago to tell";
  const auto third = look(seconds(106), 300);
  EXPECT_EQ(third.nodes[1].lag_before, 500);
  EXPECT_EQ(third.nodes[1].lag_before_ms, 6'000);
  EXPECT_EQ(look(seconds(109), 200).nodes[1].lag_before, 400) << "the newest that is old enough";
  EXPECT_EQ(look(seconds(400), 100).nodes[1].lag_before, -1) << "what is long ago says nothing";
}

TEST(ClusterMemory, StartsOverWithAnotherLeader) {
  ObservationCache cache;
  auto snapshot = cluster(500);
  cache.compare(snapshot, Monotonic(seconds(100)));
  snapshot = cluster(500);
  for (auto& node : snapshot.nodes) {
    node.epoch_number = 5;
  }
  cache.compare(snapshot, Monotonic(seconds(110)));
  EXPECT_EQ(snapshot.leader_stable_ms, 0);
  EXPECT_EQ(snapshot.nodes[1].lag_before, -1);
}

TEST(ClusterMemory, KeepsACertificateForAMinuteAndAFailureForTenSeconds) {
  ObservationCache cache;
  const auto minute = std::chrono::seconds(60);
  EXPECT_EQ(cache.certificate("https://n1", Monotonic(seconds(1)), minute), nullptr);
  cache.keep_certificate("https://n1", planner::ServedCertificate{"0A", "node", Ticks(5)},
                         Monotonic(seconds(1)));
  ASSERT_NE(cache.certificate("https://n1", Monotonic(seconds(60)), minute), nullptr);
  EXPECT_EQ((*cache.certificate("https://n1", Monotonic(seconds(60)), minute))->serial, "0A");
  EXPECT_EQ(cache.certificate("https://n1", Monotonic(seconds(61)), minute), nullptr);
  EXPECT_NE(cache.certificate("https://n1", Monotonic(seconds(599)), 10 * minute), nullptr);
  cache.keep_certificate("https://n1", std::nullopt, Monotonic(seconds(61)));
  EXPECT_NE(cache.certificate("https://n1", Monotonic(seconds(70)), minute), nullptr);
  EXPECT_EQ(cache.certificate("https://n1", Monotonic(seconds(71)), minute), nullptr);
}

}  // namespace
}  // namespace verger::controller
