#pragma once

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/operations/backup/backup_module.h"
#include "planner/backup/backup_policy.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::test {

/// Three nodes whose agents share the repository "main"; n1 leads.
class BackupRuns : public ::testing::Test {
 protected:
  BackupRuns() {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.backups = std::make_unique<FakeBackups>(h_.time);
  }
  void begin() {
    h_.boot();
    h_.register_cluster();
  }
  FakeBackups& backups() { return *h_.cluster.backups; }
  FakeNode& node(const std::string& name) { return h_.cluster.node(name); }

  static planner::BackupPolicy wanted() {
    planner::BackupPolicy out;
    out.repository = "main";
    return out;
  }
  static planner::Policy policy_of(const planner::BackupPolicy& wanted) {
    auto out = ControllerHarness::quick_policy();
    out.operation = wanted;
    return out;
  }
  std::string start(const planner::BackupPolicy& wanted) {
    return h_.start_scavenge(policy_of(wanted));
  }
  /// "code node" of each reason why there is no plan.
  std::vector<std::string> refusals(const planner::BackupPolicy& wanted) {
    auto made = h_.wait_for(h_.executor->make_plan("prod", policy_of(wanted), "test"));
    std::vector<std::string> out;
    if (made && !*made) {
      for (const auto& each : made->error().refusals) {
        out.push_back(each.node.empty() ? each.code : each.code + " " + each.node);
      }
    }
    return out;
  }
  controller::RunState end_of(const std::string& run) {
    EXPECT_TRUE(h_.run_to_end(run, std::chrono::hours(3)))
        << controller::snapshot_of(h_.state(run)).state;
    return h_.state(run);
  }
  nlohmann::json report(const std::string& run) {
    return controller::backups::report(h_.state(run), nlohmann::json::object());
  }
  /// A scavenge that a person started, and that has much left to do.
  std::string scavenge_by_hand(const std::string& name) {
    h_.cluster.scavenge_takes = std::chrono::minutes(10);
    h_.cluster.points.push_back(1'000);
    return h_.cluster.start_by_hand(name);
  }
  /// An operation of the kind is under way at the node's agent.
  bool is_at(const std::string& name, std::string_view kind) {
    return std::ranges::any_of(node(name).operations, [kind](const auto& each) {
      return each.second.status.kind == kind &&
             each.second.status.state == api::OperationState::kActing;
    });
  }
  bool comes_to(const std::string& name, std::string_view kind) {
    return h_.run_until([&] { return is_at(name, kind); });
  }

  ControllerHarness h_;
};

}  // namespace verger::test
