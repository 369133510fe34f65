#pragma once

#include <gtest/gtest.h>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace verger::test {

inline void expect_one_point_and_one_digest(const nlohmann::json& run) {
  ASSERT_TRUE(run.is_object()) << "the run did not end in time";
  EXPECT_EQ(run.at("state"), "done") << run.dump(1);
  const auto& report = run.at("report");
  std::set<std::string> points;
  std::set<std::string> digests;
  for (const auto& node : report.at("nodes")) {
    points.insert(node.at("point").at("number").dump());
    digests.insert(node.at("logical_digest").dump());
  }
  EXPECT_EQ(report.at("nodes").size(), 3U) << report.dump(1);
  EXPECT_EQ(points.size(), 1U) << report.dump(1);
  EXPECT_EQ(digests.size(), 1U) << report.dump(1);
  EXPECT_EQ(report.at("digests_equal"), true) << report.dump(1);
  EXPECT_EQ(report.at("readable_unchanged"), true) << report.dump(1);
  EXPECT_LE(report.at("planned_leader_moves"), 1);
}

}  // namespace verger::test
