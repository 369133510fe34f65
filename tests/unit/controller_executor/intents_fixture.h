#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller::testing {

/// A controller over three nodes with agents, each scavenged within 20 seconds, and its runs.
class Intents : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.cluster.scavenge_takes = std::chrono::seconds(20);
    h_.boot();
    h_.register_cluster();
  }
  std::string start(planner::Policy policy = test::ControllerHarness::quick_policy()) {
    return h_.start_scavenge(policy);
  }
  bool reaches(const std::string& run, RunStatus status) {
    h_.news = true;
    return h_.run_until(
        [&] { return std::exchange(h_.news, false) && h_.state(run).status == status; },
        std::chrono::minutes(5));
  }
  bool scavenges(const std::string& node) {
    return h_.run_until([&] { return h_.cluster.node(node).running.has_value(); });
  }
  void expect_done_once(const std::string& run) {
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    for (const auto& node : h_.cluster.nodes) {
      EXPECT_EQ(node.finished.at(0), 1) << node.name;
      EXPECT_EQ(node.priority, 0) << node.name;
    }
    EXPECT_EQ(h_.cluster.points.size(), 1U);
  }

  test::ControllerHarness h_;
};

}  // namespace verger::controller::testing
