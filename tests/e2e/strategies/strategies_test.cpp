#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/strategies/checks.h"
#include "tests/support/processes/real_cluster.h"

// Real processes: the strategies other than rolling.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST(Strategies, OfflineStopsEachServiceScavengesItsFilesAndStartsIt) {
  RealCluster cluster({.separate_agents = true, .role = "node", .services = true});
  cluster.start_all();
  cluster.register_cluster();
  const auto instances = [&cluster] {
    std::vector<std::string> out;
    const auto shown = cluster.verger_json({"cluster", "show", "orders"});
    if (shown.is_object()) {
      for (const auto& node : shown.at("snapshot").at("nodes")) {
        out.push_back(node.at("instance_id").get<std::string>());
      }
    }
    return out;
  };
  const auto before = instances();
  ASSERT_EQ(before.size(), 3U);
  const auto id = cluster.start_scavenge_run({"--strategy", "offline", "--threads", "2"});
  const auto run = cluster.wait_for_run(id, seconds(150));
  SCOPED_TRACE(cluster.logs());
  expect_one_point_and_one_digest(run);
  EXPECT_EQ(cluster.wait_until_settled(), "");
  const auto after = instances();
  ASSERT_EQ(after.size(), 3U);
  // The maker of the point may have been done with it before it could be stopped.
  int restarted = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    restarted += after[i] != before[i] ? 1 : 0;
  }
  EXPECT_GE(restarted, 2) << "each was stopped and started, and is another process now";
}

TEST(Strategies, ALeaderThatEndsInResigningIsStartedByItsAgent) {
  RealCluster cluster({.separate_agents = true, .role = "node", .services = true});
  cluster.start_all({{"VERGER_FAILPOINT", "node.resign.before-unknown"}});
  cluster.register_cluster();
  const auto id = cluster.start_scavenge_run();
  const auto run = cluster.wait_for_run(id, seconds(90));
  SCOPED_TRACE(cluster.logs());
  expect_one_point_and_one_digest(run);
  int started = 0;
  for (const auto& stage : run.at("stages")) {
    for (const auto& step : stage.at("steps")) {
      if (step.at("kind") == "start_server" && step.at("state") == "done") {
        ++started;
        EXPECT_FALSE(step.at("result").contains("not_needed")) << step.dump(1);
      }
    }
  }
  EXPECT_EQ(started, 1) << run.at("stages").dump(1);
}

TEST(Strategies, OfflineIsRefusedWhereAgentsCannotStopTheirServers) {
  RealCluster cluster({.separate_agents = true, .role = "node"});
  cluster.start_all();
  cluster.register_cluster();
  const auto refused = cluster.verger({"plan", "scavenge", "orders", "--strategy", "offline"});
  EXPECT_EQ(refused.status, 2) << refused.out;
  EXPECT_NE(refused.err.find("has no way to stop and start the server"), std::string::npos)
      << refused.err;
}

TEST(Strategies, ConcurrentEndsWithOnePointAndOneDigest) {
  RealCluster cluster;
  cluster.start_all();
  cluster.register_cluster();
  const auto id = cluster.start_scavenge_run({"--strategy", "concurrent"});
  const auto run = cluster.wait_for_run(id, seconds(90));
  SCOPED_TRACE(cluster.logs());
  expect_one_point_and_one_digest(run);
}

}  // namespace
}  // namespace verger::test
