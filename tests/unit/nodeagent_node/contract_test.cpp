// Rules of the maintenance contract that stand in no recording.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json metadata_of(NodeCluster& cluster, const std::string& stream) {
  http::Request request{.target = "/streams/" + stream + "/metadata"};
  request.headers.set("Accept", "application/json");
  const auto answer = cluster.request(0, std::move(request));
  return answer ? json::parse(answer->body, nullptr, false) : json();
}

TEST(Contract, ScavengeHistoryIsKeptAsLongAsConfiguredAndReadByOperators) {
  SimWorld world(1);
  NodeClusterOptions options;
  options.voters = 1;
  options.node.scavenge_history_max_age_days = 7;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto started = json::parse(cluster.post(0, "/admin/scavenge?format=json")->body);
  world.run_for(2s);
  const auto expect_kept_for = [&](int days) {
    for (const auto& stream :
         {std::string("$scavenges"), "$scavenges-" + started["scavengeId"].get<std::string>()}) {
      const auto metadata = metadata_of(cluster, stream);
      EXPECT_EQ(metadata["$maxAge"], days * 86'400) << stream << metadata;
      EXPECT_TRUE(metadata["$acl"]["$r"] == "$ops" ||
                  metadata["$acl"]["$r"] == json::array({"$ops"}))
          << stream << metadata;
    }
  };
  expect_kept_for(7);
  // Another value counts from the next start on, for earlier runs too.
  cluster.crash(0);
  cluster.options(0).scavenge_history_max_age_days = 3;
  ASSERT_TRUE(cluster.boot(0).has_value());
  ASSERT_TRUE(cluster.run_until_settled());
  world.run_for(2s);
  expect_kept_for(3);
}

TEST(Contract, RoutesThatAnOptionRemovesAreNotThere) {
  SimWorld world(3);
  NodeClusterOptions options;
  options.voters = 1;
  options.node.enable_atom_pub = false;
  options.node.disable_admin_ui = true;
  options.node.disable_stats_on_http = true;
  options.node.disable_gossip_on_http = true;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  for (const auto* target :
       {"/admin/scavenge/current", "/admin/login", "/streams/$scavenges", "/stats", "/stats/proc",
        "/metrics", "/gossip", "/streams/orders", "/streams/$all"}) {
    EXPECT_EQ(cluster.get(0, target)->status, 404) << target;
  }
  EXPECT_EQ(cluster.post(0, "/admin/scavenge")->status, 404);
  EXPECT_EQ(cluster.get(0, "/info")->status, 200);
  EXPECT_EQ(cluster.get(0, "/health/live")->status, 204);
}

TEST(Contract, OfFiveVotersTwoFollowersConfirmEachWrite) {
  SimWorld world(2);
  NodeClusterOptions options;
  options.voters = 5;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled(10s));
  const auto leader = *cluster.leader();
  ASSERT_EQ(cluster.append(leader, "s", "{}"), 201);
  std::vector<std::size_t> followers;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (i != leader) {
      followers.push_back(i);
    }
  }
  cluster.crash(followers[0]);
  cluster.crash(followers[1]);
  EXPECT_EQ(cluster.append(leader, "s", R"({"with":"two"})"), 201);
  cluster.crash(followers[2]);
  EXPECT_NE(cluster.append(leader, "s", R"({"with":"one"})"), 201);
}

}  // namespace
}  // namespace verger::testing
