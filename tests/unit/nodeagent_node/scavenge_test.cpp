#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "nodeagent/node/node.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::string start(NodeCluster& cluster, std::size_t i, const std::string& query = {}) {
  const auto answer = cluster.post(i, "/admin/scavenge" + query);
  EXPECT_TRUE(answer.has_value() && answer->status == 200);
  return answer ? json::parse(answer->body).value("scavengeId", "") : "";
}

bool idle(NodeCluster& cluster, std::size_t i) {
  return !cluster.node(i)->inspection().running_scavenge().has_value();
}

/// The events of a run, newest first, once its last one is there.
json events_of(NodeCluster& cluster, std::size_t i, const std::string& id) {
  json entries = json::array();
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto page = cluster.get(i, "/streams/$scavenges/" + id + "/head/100?embed=body");
    if (page && page->status == 200) {
      entries = json::parse(page->body)["entries"];
      if (!entries.empty() && entries[0]["eventType"] == "$scavengeCompleted") {
        return entries;
      }
    }
    cluster.world.run_for(10ms);
  }
  return entries;
}

json result_of(NodeCluster& cluster, std::size_t i, const std::string& id) {
  const auto entries = events_of(cluster, i, id);
  return entries.empty() ? json() : json::parse(entries[0]["data"].get<std::string>());
}

streams::DatabaseDigest digest_of(NodeCluster& cluster, std::size_t i) {
  auto job = cluster.node(i)->inspection().make_digest_job(0);
  EXPECT_TRUE(job.has_value());
  for (;;) {
    const auto step = (*job)->step(Budget{});
    EXPECT_TRUE(step.has_value());
    if (!step || step->kind == StepOutcome::Kind::kDone) {
      return (*job)->digest();
    }
  }
}

/// A single node in the middle of a scavenge, whose job takes its time after each record.
struct ScavengeUnderWay {
  explicit ScavengeUnderWay(std::uint64_t seed) : world(seed), cluster(world, one_slow_node()) {
    cluster.boot_all();
    EXPECT_TRUE(cluster.run_until_settled());
    EXPECT_TRUE(cluster.fill_with_limited_streams(8, 12));
    id = start(cluster, 0);
    EXPECT_TRUE(world.run_until(
        [this] { return cluster.node(0)->inspection().unfinished_scavenge().has_value(); }, 5s));
  }
  static NodeClusterOptions one_slow_node() {
    NodeClusterOptions options;
    options.voters = 1;
    options.job_budget = Budget{1};
    return options;
  }

  SimWorld world;
  NodeCluster cluster;
  std::string id{};
};

TEST(NodeScavenge, OnePointIsMadeByAFollowerAndReachedByAll) {
  SimWorld world(1);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_TRUE(cluster.fill_with_limited_streams(8, 12));
  ASSERT_TRUE(cluster.run_until_level());
  const auto leader = *cluster.leader();
  const auto first = (leader + 1) % 3;
  const auto before = cluster.node(first)->inspection().chunks().total_bytes;
  const auto id = start(cluster, first);
  ASSERT_TRUE(world.run_until([&] { return idle(cluster, first); }, 30s));
  const auto result = result_of(cluster, first, id);
  EXPECT_EQ(result.value("result", ""), "Success") << result.dump();
  EXPECT_GT(result.value("spaceSaved", 0), 0);
  EXPECT_LT(cluster.node(first)->inspection().chunks().total_bytes, before);
  for (const auto other : {leader, (leader + 2) % 3}) {
    const auto second = start(cluster, other, "?syncOnly=true");
    ASSERT_TRUE(world.run_until([&] { return idle(cluster, other); }, 30s));
    EXPECT_EQ(result_of(cluster, other, second).value("result", ""), "Success");
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const auto done = cluster.node(i)->inspection().last_finished_point();
    ASSERT_TRUE(done.has_value()) << i;
    EXPECT_EQ(done->number, 0);
    EXPECT_EQ(cluster.node(i)->inspection().scavenge_points()->size(), 1U);
    EXPECT_EQ(digest_of(cluster, i).logical, digest_of(cluster, 0).logical) << i;
    EXPECT_EQ(digest_of(cluster, i).readable, digest_of(cluster, 0).readable) << i;
  }
  EXPECT_GT(digest_of(cluster, 0).records, 0U);
}

TEST(NodeScavenge, AnEmptyFollowerFetchesScavengedAndMergedChunks) {
  SimWorld world(2);
  NodeCluster cluster(world);
  ASSERT_TRUE(cluster.boot(0).has_value());
  ASSERT_TRUE(cluster.boot(1).has_value());
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_TRUE(cluster.fill_with_limited_streams(8, 12));
  ASSERT_TRUE(cluster.run_until_level());
  for (std::size_t i = 0; i < 2; ++i) {
    start(cluster, i, i == 0 ? "" : "?syncOnly=true");
    ASSERT_TRUE(world.run_until([&] { return idle(cluster, i); }, 30s));
  }
  ASSERT_TRUE(cluster.fill_with_limited_streams(2, 5));
  ASSERT_TRUE(cluster.boot(2).has_value());
  ASSERT_TRUE(cluster.run_until_level(30s));
  EXPECT_EQ(digest_of(cluster, 2).logical, digest_of(cluster, 0).logical);
  const auto page = cluster.get(2, "/streams/s0");
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(json::parse(page->body)["entries"].size(), 2U);
}

TEST(NodeScavenge, ALaggingFollowerTakesTheWholeScavengedChunkAgain) {
  SimWorld world(3);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_TRUE(cluster.fill_with_limited_streams(3, 4));
  ASSERT_TRUE(cluster.run_until_level());
  const auto lagging = (*cluster.leader() + 1) % 3;
  cluster.crash(lagging);
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_TRUE(cluster.fill_with_limited_streams(8, 12));
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != lagging) {
      start(cluster, i);
      ASSERT_TRUE(world.run_until([&] { return idle(cluster, i); }, 30s));
    }
  }
  ASSERT_TRUE(cluster.boot(lagging).has_value());
  ASSERT_TRUE(cluster.run_until_level(30s));
  EXPECT_EQ(digest_of(cluster, lagging).logical, digest_of(cluster, *cluster.leader()).logical);
}

TEST(NodeScavenge, AStopIsAnsweredOnceTheRunHasEndedAndTheNextRunResumes) {
  ScavengeUnderWay run(4);
  auto& cluster = run.cluster;
  http::Request again;
  again.method = "POST";
  again.target = "/admin/scavenge";
  const auto refused = cluster.request(0, again);
  EXPECT_EQ(refused->status, 400);
  EXPECT_EQ(refused->body, "Scavenge is already running");
  http::Request stop;
  stop.method = "DELETE";
  stop.target = "/admin/scavenge/current";
  stop.headers.set("Accept", "application/json");
  const auto stopped = cluster.request(0, stop, 60s);
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->status, 200);
  EXPECT_EQ(stopped->body, "\"" + run.id + "\"");
  EXPECT_TRUE(idle(cluster, 0));
  EXPECT_EQ(result_of(cluster, 0, run.id).value("result", ""), "Stopped");
  const auto open = cluster.node(0)->inspection().unfinished_scavenge();
  ASSERT_TRUE(open.has_value());
  const auto second = start(cluster, 0);
  ASSERT_TRUE(run.world.run_until([&] { return idle(cluster, 0); }, 30s));
  EXPECT_EQ(result_of(cluster, 0, second).value("result", ""), "Success");
  EXPECT_EQ(cluster.node(0)->inspection().last_finished_point()->position, open->point.position);
  EXPECT_EQ(cluster.node(0)->inspection().scavenge_points()->size(), 1U);
}

/// The lines of /metrics on scavenges.
std::vector<std::string> scavenge_statuses(NodeCluster& cluster) {
  std::vector<std::string> out;
  http::Request metrics;
  metrics.method = "GET";
  metrics.target = "/metrics";
  std::istringstream lines(cluster.request(0, metrics)->body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("eventstore_statuses{name=\"Scavenge\"")) {
      out.push_back(line);
    }
  }
  return out;
}

TEST(NodeScavenge, MetricsKeepTheStatusesThatWereSeenAndTheNewestIsTheCurrentOne) {
  ScavengeUnderWay run(6);
  const auto seconds = [](const std::string& line) {
    return std::stoll(line.substr(line.find("} ") + 2));
  };
  const auto during = scavenge_statuses(run.cluster);
  ASSERT_EQ(during.size(), 1U);
  EXPECT_NE(during[0].find(" Phase\""), std::string::npos) << during[0];
  ASSERT_TRUE(run.world.run_until([&] { return idle(run.cluster, 0); }, 30s));
  run.world.run_for(1s);
  const auto after = scavenge_statuses(run.cluster);
  ASSERT_GE(after.size(), 2U);
  EXPECT_EQ(after.front().substr(0, after.front().find('}')),
            during[0].substr(0, during[0].find('}')));
  EXPECT_NE(after.back().find("status=\"Idle\""), std::string::npos) << after.back();
  EXPECT_GT(seconds(after.back()), seconds(after.front()));
  EXPECT_EQ(scavenge_statuses(run.cluster), after) << "one answer for a second";
}

TEST(NodeScavenge, BeginsOnceTheEndOfThePointsChunkIsCommittedToo) {
  SimWorld world(1);
  NodeCluster cluster(world);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_TRUE(cluster.fill_with_limited_streams(8, 12));
  ASSERT_TRUE(cluster.run_until_level());
  const auto leader = *cluster.leader();
  auto& node = cluster.node(leader)->inspection();
  const auto before = node.positions().committed;
  start(cluster, leader);
  ASSERT_TRUE(world.run_until([&] { return node.scavenge_points()->size() == 1; }, 1s));
  ASSERT_GT(node.positions().committed, before);
  ASSERT_LT(node.positions().committed, node.positions().writer) << "the point, not the end";
  world.isolate(cluster.host(leader).name());
  world.run_for(1s);
  EXPECT_FALSE(node.unfinished_scavenge().has_value() || node.last_finished_point().has_value());
  world.heal();
  ASSERT_TRUE(world.run_until([&] { return idle(cluster, leader); }, 30s));
  EXPECT_TRUE(node.last_finished_point().has_value());
}

TEST(NodeScavenge, APointIsUnfinishedUntilItIsFinished) {
  ScavengeUnderWay run(6);
  auto& node = run.cluster.node(0)->inspection();
  run.world.before_event = [&node] {
    EXPECT_NE(node.unfinished_scavenge().has_value(), node.last_finished_point().has_value());
  };
  ASSERT_TRUE(run.world.run_until([&] { return idle(run.cluster, 0); }, 30s));
  run.world.before_event = nullptr;
  EXPECT_TRUE(node.last_finished_point().has_value());
}

TEST(NodeScavenge, ARunThatDiedWithItsProcessIsCompletedAsInterrupted) {
  ScavengeUnderWay run(5);
  auto& cluster = run.cluster;
  run.world.run_for(5ms);
  ASSERT_FALSE(idle(cluster, 0));
  cluster.crash(0);
  ASSERT_TRUE(cluster.boot(0).has_value());
  ASSERT_TRUE(cluster.run_until_settled());
  const auto result = result_of(cluster, 0, run.id);
  EXPECT_EQ(result.value("result", ""), "Interrupted");
  EXPECT_EQ(result.value("error", ""), "The node was restarted.");
}

TEST(NodeScavenge, TooManyThreadsEndTheRunAsTheServersDo) {
  SimWorld world(6);
  NodeClusterOptions options;
  options.voters = 1;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  ASSERT_TRUE(cluster.fill_with_limited_streams(2, 4));
  const auto id = start(cluster, 0, "?threads=6");
  ASSERT_TRUE(world.run_until([&] { return idle(cluster, 0); }, 30s));
  const auto result = result_of(cluster, 0, id);
  EXPECT_EQ(result.value("result", ""), "Interrupted");
  EXPECT_EQ(result.value("error", ""),
            "Error while scavenging DB: Object pool 'scavenge backend pool' has reached its max "
            "limit for items: 5..");
}

}  // namespace
}  // namespace verger::testing
