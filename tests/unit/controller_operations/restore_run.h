#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/operations/restore/restore_module.h"
#include "planner/restore/restore_policy.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::test {

/// Three nodes with agents, which all see backup "g1" in repository "main"; n1 leads.
class RestoreRun : public ::testing::Test {
 protected:
  RestoreRun() {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.knows_restores = true;
  }
  void begin() {
    h_.boot();
    h_.register_cluster();
  }
  FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  FakeFiles& files(const std::string& name) { return node(name).files; }

  static planner::Policy policy_of(planner::RestorePolicy wanted) {
    auto out = ControllerHarness::quick_policy();
    wanted.repository = "main";
    out.limits.undo_deadline_ms = 60'000;
    out.limits.service_deadline_ms = 60'000;
    out.operation = std::move(wanted);
    return out;
  }
  static planner::Policy of_cluster() {
    planner::RestorePolicy wanted;
    wanted.scope = planner::RestoreScope::kCluster;
    return policy_of(wanted);
  }
  static planner::Policy of_node(std::string name = "n3") {
    planner::RestorePolicy wanted;
    wanted.nodes = std::move(name);
    return policy_of(wanted);
  }

  std::string start(const planner::Policy& policy) { return h_.start_scavenge(policy); }
  /// "code node" of each reason why there is no plan.
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
  nlohmann::json report(const std::string& run) {
    return controller::cluster_restore::report(h_.state(run), nlohmann::json::object());
  }
  std::vector<std::string> histories() {
    std::vector<std::string> out;
    for (const auto& each : h_.cluster.nodes) {
      out.push_back(each.files.history);
    }
    return out;
  }
  bool all_up() {
    return std::ranges::all_of(h_.cluster.nodes, [](const FakeNode& each) { return each.up; });
  }
  bool ends(const std::string& run) { return h_.run_to_end(run, std::chrono::hours(30)); }
  /// All nodes run on the backup, and never ran beside others.
  void expect_restored(const std::string& run) {
    ASSERT_TRUE(ends(run)) << controller::snapshot_of(h_.state(run)).state;
    ASSERT_EQ(h_.state(run).status, controller::RunStatus::kDone) << h_.state(run).reason;
    EXPECT_THAT(histories(), ::testing::Each("g1"));
    EXPECT_TRUE(all_up());
    EXPECT_FALSE(h_.cluster.mixed_histories);
    EXPECT_EQ(report(run)["outcome"], "restored");
  }
  /// All nodes run on what they had.
  void expect_undone(const std::string& run,
                     controller::RunStatus status = controller::RunStatus::kFailed) {
    ASSERT_TRUE(ends(run)) << controller::snapshot_of(h_.state(run)).state;
    EXPECT_EQ(h_.state(run).status, status) << h_.state(run).reason;
    EXPECT_THAT(histories(), ::testing::Each("own"));
    EXPECT_TRUE(all_up());
    EXPECT_FALSE(h_.cluster.mixed_histories);
    EXPECT_EQ(report(run)["outcome"], "undone") << report(run);
  }
  /// An operation of that kind has arrived at the agent, for the first time.
  void when(const std::string& kind, const std::string& node_name, std::function<void()> then) {
    h_.cluster.acted = [this, kind, node_name, then = std::move(then)](
                           const FakeNode& to, const http::Request& request) {
      if (to.name == node_name && request.target == "/agent/v1/operations" &&
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
