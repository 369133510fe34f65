// Backups that may hold what a run has redacted: named, deleted on request, and restored.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/operations/restore/restore_module.h"
#include "planner/restore/restore_policy.h"
#include "tests/unit/controller_operations/redaction_runs.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using test::RedactionRun;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

planner::Policy restoring_n3(bool redact_again = true) {
  auto policy = ControllerHarness::quick_policy();
  planner::RestorePolicy restore;
  restore.repository = "main";
  restore.nodes = "n3";
  restore.redact_again = redact_again;
  policy.operation = std::move(restore);
  return policy;
}

TEST_F(RedactionRun, BackupsThatMayHoldTheDataAreNamedAndPlansOfRestoresRedactThem) {
  h_.cluster.knows_restores = true;
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  const auto shown = report(id);
  ASSERT_EQ(shown["backups"].size(), 1U) << shown;
  EXPECT_EQ(shown["backups"][0]["generation"], "g1");
  EXPECT_EQ(shown["backups"][0]["command"], "verger backup delete prod g1 --repository main");
  EXPECT_THAT(shown["notes"], Contains(HasSubstr("brings the data back")));
  const auto policy = restoring_n3();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_THAT((*made)->plan->notes,
              Contains(HasSubstr(fmt::format("run {} redacted 2 records", id.substr(0, 12)))));
  const auto* again = (*made)->plan->find_step("redact-n3");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->kind, "redaction_again");
  const auto restored = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_to_end(restored, std::chrono::hours(1)));
  EXPECT_EQ(h_.state(restored).status, RunStatus::kDone) << h_.state(restored).reason;
  EXPECT_EQ(done_.back(), "again n3");
  EXPECT_EQ(lists_.size(), 1U) << "by the list of the run";
  EXPECT_THAT(
      cluster_restore::report(h_.state(restored), json::object())["notes"],
      Contains(HasSubstr("n3: of the events that runs have redacted the restored files had 2: "
                         "2 redacted again, 2 read as blank; 9 files were searched for their "
                         "texts: no text is left")));
}

TEST_F(RedactionRun, WhatWasRedactedByHandIsRedactedAgainInRestores) {
  h_.cluster.knows_restores = true;
  for (const auto* name : {"n1", "n2", "n3"}) {
    nodes_[name].to_do = 0;
  }
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_THAT(redacted(), IsEmpty());
  const auto policy = restoring_n3();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_NE((*made)->plan->find_step("redact-n3"), nullptr);
  EXPECT_THAT((*made)->plan->notes, ::testing::Not(Contains("")));
}

TEST_F(RedactionRun, WhatCannotBeRedactedAgainInARestoreIsADifference) {
  h_.cluster.knows_restores = true;
  run();
  nodes_["n3"].found = {"12@customer-7 is in chunk-000004.000000, which is still written to"};
  const auto policy = restoring_n3();
  const auto id = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_to_end(id, std::chrono::hours(1)));
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
}

TEST_F(RedactionRun, ARestoreAsItWasIsOnRequest) {
  h_.cluster.knows_restores = true;
  run();
  const auto policy = restoring_n3(/*redact_again=*/false);
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_EQ((*made)->plan->find_step("redact-n3"), nullptr);
}

/// With the agents' repository "main", that has a backup of before.
class ExpiringRun : public RedactionRun {
 protected:
  void SetUp() override {
    h_.cluster.backups = std::make_unique<test::FakeBackups>(h_.time);
    RedactionRun::SetUp();
    add_backup("old", "prod", 600'000);
  }
  void add_backup(std::string id, std::string cluster, std::int64_t end) {
    api::BackupGeneration made;
    made.id = std::move(id);
    made.node = "n2";
    made.cluster = std::move(cluster);
    made.end_position = end;
    backups().generations.push_back(std::move(made));
  }
  test::FakeBackups& backups() { return *h_.cluster.backups; }
  static planner::Policy expiring() {
    auto policy = wanted_policy();
    planner::redaction_of(policy).expire_backups = "main";
    return policy;
  }
  std::string run_expiring() {
    auto id = h_.start_scavenge(expiring());
    EXPECT_TRUE(h_.run_to_end(id, std::chrono::hours(1))) << snapshot_of(h_.state(id)).state;
    return id;
  }
  std::vector<std::string> kept() {
    std::vector<std::string> out;
    for (const auto& each : backups().generations) {
      out.push_back(each.id);
    }
    return out;
  }
};

TEST_F(ExpiringRun, DeletesThisClustersBackupsThatMayHoldTheDataOnceANewOneIsSound) {
  add_backup("older", "prod", 100);  // ends before the first of the records
  add_backup("foreign", "other", 600'000);
  add_backup("nameless", "", 600'000);
  const auto id = run_expiring();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_THAT(kept(), ElementsAre("older", "foreign", "nameless", "g1"));
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1", "retain named"));
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "redacted");
  std::map<std::string, bool> expired;
  for (const auto& each : shown["backups"]) {
    expired[each["generation"]] = each["expired"];
  }
  EXPECT_EQ(expired, (std::map<std::string, bool>{{"nameless", false}, {"old", true}}));
  EXPECT_THAT(shown["notes"], Contains(HasSubstr("backup delete --undo")));
}

TEST_F(ExpiringRun, DeletesNoneBehindADamagedNewOne) {
  backups().damages_next = true;
  const auto id = run_expiring();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
  EXPECT_THAT(kept(), ElementsAre("old", "g1"));
  EXPECT_EQ(report(id)["backups"][0]["expired"], false);
}

TEST_F(ExpiringRun, DeletesNoneWhereTheNewOneMayHoldTheData) {
  nodes_["n2"].filled_again = true;
  const auto id = run_expiring();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
  EXPECT_THAT(kept(), ElementsAre("old", "g1"));
  EXPECT_EQ(report(id)["backups"][0]["expired"], false);
}

TEST_F(ExpiringRun, IsRefusedWhereNoAgentHasTheRepository) {
  for (const auto* name : {"n1", "n2", "n3"}) {
    backups().at[name].configured = false;
  }
  const auto made = h_.wait_for(h_.executor->make_plan("prod", expiring(), "test"));
  ASSERT_TRUE(made.has_value());
  ASSERT_FALSE(made->has_value());
  EXPECT_EQ(made->error().refusals.front().code, "no-repository");
}

}  // namespace
}  // namespace verger::controller
