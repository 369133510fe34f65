#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;

class ConcurrentScavenge : public ::testing::Test {
 protected:
  void boot(int voters) {
    harness_ = std::make_unique<ControllerHarness>(voters);
    harness_->options.poll_interval = std::chrono::milliseconds(500);
    harness_->cluster.scavenge_takes = std::chrono::seconds(20);
    harness_->boot();
    harness_->register_cluster();
  }
  std::string start() {
    auto policy = ControllerHarness::quick_policy();
    scavenge_of(policy).strategy = planner::Strategy::kConcurrent;
    return harness_->start_scavenge(policy);
  }
  std::unique_ptr<ControllerHarness> harness_;
};

TEST_F(ConcurrentScavenge, OneMakesThePointThenAllOthersAtOnceThenTheLeader) {
  boot(5);
  auto& cluster = harness_->cluster;
  const auto running = [&cluster] {
    return std::ranges::count_if(cluster.nodes,
                                 [](const auto& node) { return node.running.has_value(); });
  };
  std::ptrdiff_t most = 0;
  std::ptrdiff_t with_creator = 0;
  std::ptrdiff_t with_leader = 0;
  cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
    if (request.target == "/agent/v1/operations" &&
        request.body.find("\"scavenge\"") != std::string::npos) {
      most = std::max(most, running());
      with_creator = node.name == "n2" ? std::max(with_creator, running()) : with_creator;
      with_leader = node.name == "n1" ? std::max(with_leader, running()) : with_leader;
    }
  };
  const auto run = start();
  ASSERT_TRUE(harness_->run_to_end(run));
  EXPECT_EQ(harness_->state(run).status, RunStatus::kDone) << harness_->state(run).reason;
  EXPECT_EQ(most, 3) << "n3, n4 and n5 side by side";
  EXPECT_EQ(with_creator, 1);
  EXPECT_EQ(with_leader, 1);
  EXPECT_EQ(cluster.points.size(), 1U);
  for (const auto& node : cluster.nodes) {
    EXPECT_EQ(node.finished.at(0), 1) << node.name;
    EXPECT_EQ(node.priority, 0);
  }
  EXPECT_EQ(cluster.total_resigns(), 1);
}

TEST_F(ConcurrentScavenge, APauseMovesTheDeadlineOnceForAllOfThem) {
  boot(5);
  auto& cluster = harness_->cluster;
  auto policy = ControllerHarness::quick_policy();
  scavenge_of(policy).strategy = planner::Strategy::kConcurrent;
  scavenge_of(policy).scavenge_deadline_ms = 100'000;
  const auto run = harness_->start_scavenge(policy);
  ASSERT_TRUE(harness_->run_until([&] {
    return cluster.node("n3").running && cluster.node("n4").running && cluster.node("n5").running;
  }));
  ASSERT_TRUE(harness_->executor->pause(run, "me", "").has_value());
  harness_->run_until([] { return false; }, std::chrono::seconds(200));
  EXPECT_TRUE(harness_->alerts(run).empty());
  cluster.scavenge_takes = std::chrono::hours(1);
  ASSERT_TRUE(harness_->wait_for(harness_->executor->resume(run, "me")).has_value());
  harness_->run_until([] { return false; }, std::chrono::seconds(110));
  ASSERT_FALSE(harness_->alerts(run).empty()) << "three pauses of 200 s were counted";
  EXPECT_THAT(harness_->alerts(run)[0], ::testing::HasSubstr("deadline"));
}

TEST_F(ConcurrentScavenge, APauseStopsAllOfThemAndEachResumes) {
  boot(5);
  auto& cluster = harness_->cluster;
  const auto run = start();
  ASSERT_TRUE(harness_->run_until([&] {
    return cluster.node("n3").running && cluster.node("n4").running && cluster.node("n5").running;
  }));
  ASSERT_TRUE(harness_->executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(
      harness_->run_until([&] { return harness_->state(run).status == RunStatus::kPaused; }));
  for (const auto& node : cluster.nodes) {
    EXPECT_FALSE(node.running.has_value()) << node.name;
  }
  ASSERT_TRUE(harness_->wait_for(harness_->executor->resume(run, "me")).has_value());
  ASSERT_TRUE(harness_->run_to_end(run));
  EXPECT_EQ(harness_->state(run).status, RunStatus::kDone) << harness_->state(run).reason;
  for (const auto& node : cluster.nodes) {
    EXPECT_EQ(node.finished.at(0), 1) << node.name;
  }
}

TEST_F(ConcurrentScavenge, OneThatErrsIsTriedAgainWhileTheOthersGoOn) {
  boot(5);
  auto& cluster = harness_->cluster;
  cluster.node("n4").next_ends = {"Errored"};
  const auto run = start();
  ASSERT_TRUE(harness_->run_to_end(run));
  EXPECT_EQ(harness_->state(run).status, RunStatus::kDone) << harness_->state(run).reason;
  EXPECT_EQ(cluster.node("n4").scavenge_starts, 2);
  EXPECT_EQ(cluster.node("n3").scavenge_starts, 1);
}

}  // namespace
}  // namespace verger::controller
