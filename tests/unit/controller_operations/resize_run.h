#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/operations/resize/resize_module.h"
#include "planner/resize/resize_policy.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::test {

/// n1 leads; n4 and n5 are machines with agents whose servers are stopped (growing), or voters
/// (shrinking). All agents see backup "g1".
class ResizeRun : public ::testing::Test {
 protected:
  explicit ResizeRun(int voters = 3) : h_(voters) {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.knows_restores = true;
    h_.cluster.restorable.front().last_verify =
        api::BackupCheckSummary{.at = Ticks(kUnixEpoch.value() + 1), .passed = true};
  }
  void begin() {
    const auto voters = h_.cluster.nodes.size();
    for (int spares = voters == 3 ? 2 : 0; spares > 0; --spares) {
      h_.cluster.add_spare(/*read_only_replica=*/false);
      h_.cluster.nodes.back().size.in_file = 5;
    }
    h_.boot();
    h_.register_cluster();
  }
  FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  FakeSize& size(const std::string& name) { return node(name).size; }

  static planner::Policy policy_of(planner::ResizePolicy wanted) {
    auto out = ControllerHarness::quick_policy();
    out.limits.undo_deadline_ms = 60'000;
    out.limits.service_deadline_ms = 60'000;
    out.operation = std::move(wanted);
    return out;
  }
  static planner::Policy to_five() {
    planner::ResizePolicy wanted;
    wanted.to = 5;
    wanted.nodes = "n4=http://10.0.0.4:2113,n5=http://10.0.0.5:2113";
    wanted.agents = "http://10.0.0.4:2114,http://10.0.0.5:2114";
    wanted.repository = "main";
    return policy_of(wanted);
  }
  static planner::Policy to_three(std::string leaving = {}) {
    planner::ResizePolicy wanted;
    wanted.to = 3;
    wanted.leaving = std::move(leaving);
    return policy_of(wanted);
  }

  std::string start(const planner::Policy& policy) { return h_.start_scavenge(policy); }
  std::vector<std::string> refusals(const planner::Policy& policy) {
    auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
    std::vector<std::string> out;
    if (made && !*made) {
      for (const auto& each : made->error().refusals) {
        out.push_back(each.node.empty() ? each.code : each.code + " " + each.node);
      }
    }
    return out;
  }
  std::vector<std::string> registered() {
    std::vector<std::string> out;
    for (const auto& each : h_.registry->find("prod")->nodes) {
      out.push_back(each.name);
    }
    return out;
  }
  std::vector<int> sizes() {
    std::vector<int> out;
    for (const auto& each : h_.cluster.nodes) {
      out.push_back(each.up ? each.size.running : 0);
    }
    return out;
  }
  nlohmann::json report(const std::string& run) {
    return controller::resize::report(h_.state(run), nlohmann::json::object());
  }
  bool ends(const std::string& run) { return h_.run_to_end(run, std::chrono::hours(60)); }

  void expect_grown(const std::string& run) {
    ASSERT_TRUE(ends(run)) << snapshot_of(h_.state(run)).state;
    ASSERT_EQ(h_.state(run).status, controller::RunStatus::kDone) << h_.state(run).reason;
    EXPECT_THAT(sizes(), ::testing::ElementsAre(5, 5, 5, 5, 5));
    EXPECT_THAT(registered(), ::testing::ElementsAre("n1", "n2", "n3", "n4", "n5"));
    EXPECT_EQ(report(run)["outcome"], "resized") << report(run).dump(1);
    EXPECT_FALSE(h_.cluster.two_quorums);
  }
  void expect_shrunk(const std::string& run) {
    ASSERT_TRUE(ends(run)) << snapshot_of(h_.state(run)).state;
    ASSERT_EQ(h_.state(run).status, controller::RunStatus::kDone) << h_.state(run).reason;
    EXPECT_THAT(sizes(), ::testing::ElementsAre(3, 3, 3, 0, 0));
    EXPECT_THAT(registered(), ::testing::ElementsAre("n1", "n2", "n3"));
    EXPECT_EQ(report(run)["outcome"], "resized") << report(run).dump(1);
    EXPECT_FALSE(h_.cluster.two_quorums);
  }
  /// Three of size 3, and machines with their former files; or five of size 5.
  void expect_as_before(const std::string& run, int voters) {
    ASSERT_TRUE(ends(run)) << snapshot_of(h_.state(run)).state;
    EXPECT_EQ(report(run)["outcome"], "undone") << report(run).dump(1);
    for (const auto& each : h_.cluster.nodes) {
      const bool counts = each.index <= voters;
      EXPECT_EQ(each.up, counts) << each.name;
      EXPECT_EQ(each.size.in_file, counts ? voters : 5) << each.name;
      if (counts) {
        EXPECT_EQ(each.size.running, voters) << each.name;
        EXPECT_THAT(each.size.seeds, ::testing::ElementsAre("10.0.0.1:2113")) << each.name;
      } else {
        EXPECT_EQ(each.files.history, "") << each.name;
      }
    }
    EXPECT_EQ(registered().size(), static_cast<std::size_t>(voters));
    EXPECT_FALSE(h_.cluster.two_quorums);
  }
  /// The first time that an agent gets an operation of that kind.
  void when(const std::string& name, const std::string& kind, std::function<void()> then) {
    h_.cluster.acted = [this, name, kind, then = std::move(then)](const FakeNode& to,
                                                                  const http::Request& request) {
      if (to.name == name && request.target == "/agent/v1/operations" &&
          nlohmann::json::parse(request.body).at("kind") == kind && !struck_) {
        struck_ = true;
        then();
      }
    };
  }

  ControllerHarness h_;
  bool struck_ = false;
};

}  // namespace verger::test
