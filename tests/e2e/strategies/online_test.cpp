// Real processes: three embedded nodes are scavenged by their agents beside them, while a client
// writes.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/strategies/checks.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/processes/steady_writer.h"

namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class OnlineCluster : public testing::Test {
 protected:
  /// The leader is scavenged while it leads: no client has to look for another.
  std::string start_run() {
    const auto file = directory_.path() / "policy.yaml";
    std::ofstream(file) << "name: online\nclusters: [orders]\noperation: scavenge\n"
                           "strategy: online\nleader: in-place\nparameters: {threads: 2}\n";
    const auto applied = cluster_.verger({"policy", "apply", file.string()});
    EXPECT_EQ(applied.status, 0) << applied.err;
    return cluster_.start_scavenge_run({"--policy", "online"});
  }
  void expect_switched(const json& run) {
    expect_one_point_and_one_digest(run);
    for (const auto& node : run.at("report").at("nodes")) {
      EXPECT_EQ(node.at("way"), "online") << node.dump(1);
      EXPECT_GE(node.at("chunks_switched"), 2) << node.dump(1);
      EXPECT_LT(node.at("bytes_after"), node.at("bytes_before")) << node.dump(1);
    }
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      EXPECT_FALSE(std::filesystem::exists(cluster_.node_directory(i) / ".verger-online"));
    }
  }

  TempDirectory directory_;
  RealCluster cluster_{
      {.separate_agents = true, .role = "node", .agent_arguments = {"--enable-unix-socket"}}};
};

TEST_F(OnlineCluster, IsScavengedUnderLoadWithoutAClientError) {
  cluster_.start_all();
  cluster_.register_cluster();
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(20)) << cluster_.logs();
  const auto before = writer.written();
  const auto run = cluster_.wait_for_run(start_run(), seconds(120));
  SCOPED_TRACE(cluster_.logs());
  expect_switched(run);
  EXPECT_EQ(run.at("report").at("planned_leader_moves"), 0);
  EXPECT_GT(writer.written(), before + 20) << "it wrote meanwhile";
  EXPECT_TRUE(writer.wait_for(20));
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);
  EXPECT_EQ(writer.tries_in_vain(), 0);
}

TEST_F(OnlineCluster, IsScavengedThoughAnAgentAndANodeAreKilledAtASwitch) {
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    cluster_.start_node(
        i, i == 2 ? Environment{{"VERGER_FAILPOINT", "log.switch.after-rename"}} : Environment{});
    cluster_.start_agent(
        i, i == 1 ? Environment{{"VERGER_FAILPOINT", "online.switch.answered:2"}} : Environment{});
  }
  cluster_.start_controller();
  cluster_.register_cluster();
  const auto agent = cluster_.agent(1).pid();
  const auto node = cluster_.node(2).pid();
  SteadyWriter writer(cluster_, {});
  const auto run = cluster_.wait_for_run(start_run(), seconds(150));
  SCOPED_TRACE(cluster_.logs());
  expect_switched(run);
  EXPECT_NE(cluster_.agent(1).pid(), agent) << "it was not killed";
  EXPECT_NE(cluster_.node(2).pid(), node) << "it was not killed";
  EXPECT_TRUE(writer.wait_for(20));
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);
}

}  // namespace
}  // namespace verger::test
