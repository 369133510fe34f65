// A node that was away for weeks comes back to a leader whose old chunks were scavenged, merged and
// scavenged again meanwhile, by others than those it had seen lead.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/node.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class Return : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Return() : world_(GetParam()), cluster_(world_) {}

  void set_metadata(const std::string& stream, const std::string& metadata) {
    http::Request request{.method = "POST", .target = "/streams/" + stream + "/metadata"};
    request.headers.set("Content-Type", "application/json");
    request.headers.set("ES-EventId", world_.random().uuid().to_string());
    request.body = metadata;
    const auto set = cluster_.request(*cluster_.leader(), request);
    ASSERT_TRUE(set && set->status == 201);
  }
  void write(int events) {
    for (int i = 0; i < events; ++i) {
      // s4 is deleted for good in the second week.
      const auto one = world_.random().below(weeks_ < 2 ? 6 : 5);
      const auto stream = "s" + std::to_string(one == 4 && weeks_ >= 2 ? 5 : one);
      const std::string padding(world_.random().below(6000), 'x');
      ASSERT_EQ(cluster_.append(*cluster_.leader(), stream, "\"" + padding + "\""), 201);
    }
  }
  void remove(const std::string& stream, bool for_good) {
    http::Request request{.method = "DELETE", .target = "/streams/" + stream};
    if (for_good) {
      request.headers.set("ES-HardDelete", "true");
    }
    const auto removed = cluster_.request(*cluster_.leader(), request);
    ASSERT_TRUE(removed && removed->status == 204) << removed->status;
  }
  void scavenge(std::size_t i, const std::string& query) {
    const auto started = cluster_.post(i, "/admin/scavenge" + query);
    ASSERT_TRUE(started && started->status == 200);
    ASSERT_TRUE(world_.run_until(
        [&] { return !cluster_.node(i)->inspection().running_scavenge().has_value(); }, 60s));
  }
  /// One point, reached by all that are up.
  void scavenge_all() {
    bool first = true;
    for (std::size_t i = 0; i < 3; ++i) {
      if (cluster_.host(i).up()) {
        scavenge(i, first ? "" : "?syncOnly=true");
        first = false;
      }
    }
  }
  void a_week_passes() {
    ++weeks_;
    skew_ += std::chrono::hours(24 * 7);
    for (std::size_t i = 0; i < 3; ++i) {
      cluster_.host(i).clock_skew = skew_;
    }
  }
  streams::DatabaseDigest digest_of(std::size_t i, std::int64_t point) {
    auto job = cluster_.node(i)->inspection().make_digest_job(point);
    EXPECT_TRUE(job.has_value());
    while (true) {
      const auto step = (*job)->step(Budget{});
      EXPECT_TRUE(step.has_value());
      if (!step || step->kind == StepOutcome::Kind::kDone) {
        return (*job)->digest();
      }
    }
  }

  SimWorld world_;
  NodeCluster cluster_;
  std::chrono::milliseconds skew_{0};
  int weeks_ = 0;
};

TEST_P(Return, AfterWeeksANodeCatchesUpWithALeaderWhoseOldChunksWereScavenged) {
  cluster_.boot_all();
  ASSERT_TRUE(cluster_.run_until_settled());
  set_metadata("s0", R"({"$maxCount":2})");
  set_metadata("s1", R"({"$maxAge":86400})");
  set_metadata("s2", R"({"$tb":3})");
  write(20);
  ASSERT_TRUE(cluster_.run_until_level());
  // It goes in the middle of a chunk, or with its end not yet confirmed.
  const auto away = (*cluster_.leader() + (GetParam() % 3)) % 3;
  write(static_cast<int>(world_.random().below(12)));
  cluster_.crash(away, /*power=*/GetParam() % 2 == 0);
  ASSERT_TRUE(cluster_.run_until_settled(20s));
  for (int week = 0; week < 4; ++week) {
    write(25);
    a_week_passes();
    if (week == 1) {
      remove("s3", false);
      remove("s4", true);
    }
    scavenge_all();
    // Another node leads from here, so that the epochs it finds are not those it knew.
    ASSERT_TRUE(cluster_.post(*cluster_.leader(), "/admin/node/resign").has_value());
    world_.run_for(200ms);
    ASSERT_TRUE(cluster_.run_until_settled(20s));
    ASSERT_TRUE(cluster_.run_until_level(20s));
    if (week == 1) {
      set_metadata("s5", R"({"$maxCount":1})");
    }
  }

  const auto other = (away + 1) % 3;
  const auto& leader_files = cluster_.node(other)->inspection();
  ASSERT_LT(leader_files.chunks().total_bytes, leader_files.positions().writer.value() * 3 / 4)
      << "there is nothing scavenged to come back to";
  const auto booted = cluster_.boot(away);
  ASSERT_TRUE(booted.has_value()) << booted.error().message;
  ASSERT_TRUE(cluster_.run_until_level(60s)) << "it does not catch up";
  const auto points = cluster_.node(away)->inspection().scavenge_points();
  ASSERT_TRUE(points.has_value());
  EXPECT_EQ(points->size(), 4U);
  const auto last = points->back().number.value();
  EXPECT_EQ(digest_of(away, last).readable, digest_of(other, last).readable);
  // Scavenged to the last point itself, it has what the others have.
  scavenge(away, "?syncOnly=true");
  EXPECT_EQ(cluster_.node(away)->inspection().last_finished_point()->number, last);
  EXPECT_EQ(digest_of(away, last).readable, digest_of(other, last).readable);
  // And it counts again: with one of the others away, writes are confirmed by it.
  cluster_.crash(other);
  ASSERT_TRUE(cluster_.run_until_settled(20s));
  EXPECT_EQ(cluster_.append(*cluster_.leader(), "s0", "1"), 201);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Return, ::testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace verger::testing
