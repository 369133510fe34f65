// No work without a recent backup: the query verified_backup_age_hours.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/unit/controller_operations/backup_runs.h"

namespace verger::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BackupAge : public test::BackupRuns {
 protected:
  static planner::Policy scavenge(std::string at_most) {
    auto out = test::ControllerHarness::quick_policy();
    out.gates.queries = {{"backup", "vergerd", "verified_backup_age_hours", "", at_most}};
    return out;
  }
  /// Why there is no plan; empty: there is one.
  std::string refused(const planner::Policy& policy) {
    auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
    std::vector<std::string> out;
    if (made && !*made) {
      for (const auto& each : made->error().refusals) {
        out.push_back(fmt::format("{}: {}", each.code, each.message));
      }
    }
    return fmt::format("{}", fmt::join(out, "\n"));
  }
  void make_backup(bool verify) {
    auto policy = wanted();
    policy.verify = verify;
    EXPECT_EQ(end_of(start(policy)).status, RunStatus::kDone);
  }
};

TEST_F(BackupAge, NothingIsPlannedWithoutAVerifiedBackup) {
  begin();
  EXPECT_THAT(refused(scavenge("24")),
              HasSubstr("query-unknown: query backup: no backup of the cluster is known that was "
                        "verified"));
  make_backup(/*verify=*/false);
  EXPECT_THAT(refused(scavenge("24")), HasSubstr("verger backup verify prod"));
  make_backup(/*verify=*/true);
  EXPECT_THAT(refused(scavenge("24")), IsEmpty());
}

TEST_F(BackupAge, CountsFromTheBackupsPointInTime) {
  begin();
  make_backup(/*verify=*/true);
  auto& at = backups().generations.back().checkpoints_at;
  at = Ticks(h_.time.now().value() - 26LL * 3'600 * kTicksPerSecond);
  const auto why = refused(scavenge("24"));
  EXPECT_THAT(why, HasSubstr("query-out-of-bounds: query backup gives 26.0 h (backup g1 of n2, as "
                             "of "));
  EXPECT_THAT(why, HasSubstr("the limit is at most 24 h"));
  EXPECT_THAT(refused(scavenge("27")), IsEmpty());
}

TEST_F(BackupAge, ABackupThatWasFoundDamagedDoesNotCount) {
  begin();
  make_backup(/*verify=*/true);
  auto& backup = backups().generations.back();
  backup.last_drill =
      api::BackupCheckSummary{.at = Ticks(backup.last_verify->at.value() + 1), .passed = false};
  EXPECT_THAT(refused(scavenge("24")), HasSubstr("query-unknown"));
  backup.last_verify->at = Ticks(backup.last_drill->at.value() + 1);
  EXPECT_THAT(refused(scavenge("24")), IsEmpty());
  backup.cluster = "another";
  EXPECT_THAT(refused(scavenge("24")), HasSubstr("query-unknown"));
}

TEST_F(BackupAge, SaysWhoseRepositoriesAreNotKnown) {
  begin();
  make_backup(/*verify=*/true);
  for (const auto* name : {"n1", "n2", "n3"}) {
    backups().at[name].error = "Connection refused";
  }
  EXPECT_THAT(refused(scavenge("24")), HasSubstr("not all is known: n1: Connection refused"));
}

TEST_F(BackupAge, TheNextNodeWaitsForANewBackup) {
  begin();
  make_backup(/*verify=*/true);
  h_.cluster.scavenge_takes = std::chrono::seconds(100);
  const auto run = h_.start_scavenge(scavenge("0.05"));
  ASSERT_TRUE(h_.run_until(
      [&] {
        const auto state = h_.state(run);
        return state.status == RunStatus::kWaiting && state.reason.contains("query backup gives");
      },
      std::chrono::minutes(30)))
      << h_.state(run).reason;
  const auto scavenged =
      h_.cluster.node("n2").finished.size() + h_.cluster.node("n3").finished.size();
  EXPECT_EQ(scavenged, 2U);
  EXPECT_THAT(h_.cluster.node("n1").finished, IsEmpty());
  auto newer = backups().generations.back();
  newer.id = "g2";
  newer.checkpoints_at = newer.last_verify->at = h_.time.now();
  backups().generations.push_back(newer);
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::minutes(30))) << h_.state(run).reason;
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
}

}  // namespace
}  // namespace verger::controller
