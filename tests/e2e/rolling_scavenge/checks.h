#pragma once

#include <gtest/gtest.h>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/processes/real_cluster.h"

namespace verger::test {

/// Starts everything, registers the cluster and scavenges it: the run as it ended; null where it
/// did not within 90 s.
inline nlohmann::json scavenge_from_the_start(RealCluster& cluster) {
  cluster.start_all();
  cluster.register_cluster();
  return cluster.wait_for_run(cluster.start_scavenge_run(), std::chrono::seconds(90));
}

/// What must be true of every finished rolling scavenge of the three nodes.
inline void expect_a_good_end(const nlohmann::json& run) {
  ASSERT_TRUE(run.is_object()) << "the run did not end in time";
  EXPECT_EQ(run.at("state"), "done") << run.dump(1);
  const auto& report = run.at("report");
  ASSERT_EQ(report.at("nodes").size(), 3U) << report.dump(1);
  std::set<std::string> points;
  std::set<std::string> digests;
  std::set<std::string> compared;
  for (const auto& node : report.at("nodes")) {
    points.insert(node.at("point").dump());
    digests.insert(node.at("logical_digest").dump());
    compared.insert(node.at("chunks_compared").dump());
    ASSERT_TRUE(node.at("bytes_before").is_number()) << report.dump(1);
    ASSERT_TRUE(node.at("bytes_after").is_number()) << report.dump(1);
    EXPECT_LT(node.at("bytes_after"), node.at("bytes_before")) << report.dump(1);
  }
  EXPECT_EQ(compared.size(), 1U) << "sizes of other chunks: " << report.dump(1);
  EXPECT_EQ(points.size(), 1U) << report.dump(1);
  EXPECT_TRUE(report.at("nodes")[0].at("point").is_object()) << report.dump(1);
  EXPECT_EQ(digests.size(), 1U) << report.dump(1);
  EXPECT_EQ(report.at("digests_equal"), true) << report.dump(1);
  EXPECT_LE(report.at("planned_leader_moves"), 1) << report.dump(1);
}

}  // namespace verger::test
