// A follower without files is filled from chunks that its leader has scavenged: most streams' first
// events are no longer there. A real server loses such streams from its existence filter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/index/existence_filter.h"
#include "engine/online/shadow.h"
#include "engine/tool/program.h"
#include "nodeagent/node/detail/core.h"
#include "tests/support/manual_clock.h"
#include "tests/support/nodes/node_cluster.h"
#include "tests/support/online/online_run.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kStreams = 8;

class Refill : public ::testing::Test {
 protected:
  static NodeClusterOptions small_tables() {
    NodeClusterOptions options;
    options.node.max_mem_table_size = 10;
    return options;
  }
  void scavenge(std::size_t i) {
    const auto started =
        cluster_.post(i, i == 0 ? "/admin/scavenge" : "/admin/scavenge?syncOnly=true");
    ASSERT_TRUE(started && started->status == 200);
    ASSERT_TRUE(world_.run_until(
        [&] { return !cluster_.node(i)->inspection().running_scavenge().has_value(); }, 30s));
    ASSERT_TRUE(cluster_.run_until_level());
    ASSERT_TRUE(cluster_.node(i)->inspection().last_finished_point().has_value());
  }
  int status(std::size_t i, const std::string& target) {
    const auto answer = cluster_.get(i, target);
    return answer ? answer->status : 0;
  }
  /// Empty: `verger-db verify` finds nothing wrong with the node's files.
  std::string damage(std::size_t i) {
    const auto disk = cluster_.host(i).disk().clone();
    EXPECT_TRUE(disk->make_directories("/tmp"));
    test::ManualClock clock;
    SeededRandom random(1);
    std::ostringstream out;
    std::ostringstream err;
    tool::ToolContext tool{*disk, clock, random, null_log(), out, err};
    const auto directory = cluster_.options(i).database.string();
    const char* command[] = {"verger-db", "verify", directory.c_str(), "--tmp-dir", "/tmp"};
    return tool::run_program(5, command, tool) == kExitDone ? "" : out.str() + err.str();
  }

  SimWorld world_{11};
  NodeCluster cluster_{world_, small_tables()};
};

TEST_F(Refill, FromScavengedChunksLosesNoStream) {
  cluster_.boot_all();
  ASSERT_TRUE(cluster_.run_until_settled());
  ASSERT_TRUE(cluster_.fill_with_limited_streams(kStreams, 10));
  ASSERT_TRUE(cluster_.run_until_level());
  const auto empty = (*cluster_.leader() + 1) % 3;
  for (std::size_t i = 0; i < cluster_.size(); ++i) {
    scavenge(i);
  }
  cluster_.crash(empty, false);
  ASSERT_TRUE(cluster_.run_until_settled(20s));
  ASSERT_EQ(cluster_.append(*cluster_.leader(), "later", "1"), 201);

  cluster_.host(empty).set_disk(std::make_unique<MemoryFileSystem>());
  const auto booted = cluster_.boot(empty);
  ASSERT_TRUE(booted) << booted.error().message;
  ASSERT_TRUE(cluster_.run_until_level(60s));
  world_.run_for(35s);  // a server moves the filter's checkpoint each 30 s
  const auto& files = cluster_.node(empty)->inspection();
  EXPECT_LT(files.chunks().total_bytes, files.positions().writer.value() * 3 / 4)
      << "it was not filled from scavenged chunks";
  EXPECT_EQ(damage(empty), "");
  cluster_.crash(empty, false);
  const auto again = cluster_.boot(empty);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(cluster_.run_until_level(60s));
  for (int s = 0; s < kStreams; ++s) {
    const auto page = cluster_.get(empty, fmt::format("/streams/s{}/head/backward/20", s));
    ASSERT_TRUE(page && page->status == 200) << s;
    EXPECT_EQ(nlohmann::json::parse(page->body)["entries"].size(), 2U) << s;
  }
  EXPECT_EQ(status(empty, "/streams/later"), 200);

  // The filter, which a server that gets these files believes, has them all.
  const auto index = cluster_.options(empty).database / "index";
  index::ExistenceFilter filter(cluster_.host(empty).disk(), index, 10'000);
  ASSERT_TRUE(filter.load());
  EXPECT_GT(filter.checkpoint(), LogPosition(0)) << "nothing is in it yet, so nothing was tried";
  EXPECT_EQ(damage(empty), "");
}

TEST_F(Refill, FromANodeThatIsSwitchingGetsAll) {
  cluster_.boot_all();
  ASSERT_TRUE(cluster_.run_until_settled());
  ASSERT_TRUE(cluster_.fill_with_limited_streams(kStreams, 20));
  ASSERT_TRUE(cluster_.run_until_level());
  const auto empty = (*cluster_.leader() + 1) % 3;
  cluster_.crash(empty, false);
  ASSERT_TRUE(cluster_.run_until_settled(20s));
  const auto leader = *cluster_.leader();
  http::Request request{.method = "POST", .target = "/streams/$scavengePoints"};
  request.headers.set("Content-Type", "application/json");
  request.headers.set("ES-EventType", "$scavengePoint");
  request.headers.set("ES-EventId", "6f2f3c1e-7f59-4c3b-9a57-0f6f4d1f0c11");
  request.body = "{}";
  const auto written = cluster_.request(leader, std::move(request));
  ASSERT_TRUE(written && written->status == 201);
  ASSERT_TRUE(cluster_.run_until_level());
  const auto& inspection = cluster_.node(leader)->inspection();
  const auto points = inspection.scavenge_points();
  ASSERT_TRUE(points && points->size() == 1U);

  // The leader has an old and a new file for each chunk that it sends; the log passes meanwhile.
  cluster_.host(empty).set_disk(std::make_unique<MemoryFileSystem>());
  ASSERT_TRUE(cluster_.boot(empty));
  std::set<std::int64_t> received;
  auto& disk = cluster_.host(leader).disk();
  const auto database = cluster_.options(leader).database;
  const auto run = test::run_online(
      disk, database, cluster_.node(leader)->core()->db(),
      {.point = points->front(), .switches = [&](const online_scavenge::PreparedChunk&) {
         const auto writer = [&] {
           return cluster_.node(empty)->inspection().positions().writer.value();
         };
         const auto last = received.empty() ? -1 : *received.rbegin();
         world_.run_until([&] { return writer() > last; }, 60s);
         received.insert(writer());
         return true;
       }});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_GT(received.size(), 3U) << "it was filled before or after the switches";
  ASSERT_TRUE(cluster_.run_until_level(60s));
  scavenge(leader);
  EXPECT_TRUE(online_scavenge::remove_shadow(disk, database));
  cluster_.crash(empty, false);
  ASSERT_TRUE(cluster_.boot(empty));
  ASSERT_TRUE(cluster_.run_until_level(60s));
  for (int s = 0; s < kStreams; ++s) {
    const auto page = cluster_.get(empty, fmt::format("/streams/s{}/head/backward/20", s));
    ASSERT_TRUE(page && page->status == 200) << s;
    EXPECT_EQ(nlohmann::json::parse(page->body)["entries"].size(), 2U) << s;
  }
  EXPECT_EQ(damage(empty), "");
  EXPECT_EQ(damage(leader), "");
}

}  // namespace
}  // namespace verger::testing
