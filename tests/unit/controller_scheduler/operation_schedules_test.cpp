// Schedules of operations that say more than when: what needs a run and until when, how old the
// newest result may be, and what makes a run due at once.
#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/restore/restore_policy.h"
#include "tests/unit/controller_scheduler/schedules_case.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Schedules of a cluster with TLS whose certificates began on 2024-06-01 and end on 2024-06-11.
class Renewals : public Schedules {
 protected:
  void SetUp() override {
    h_.scheme = "https";
    h_.served_certificate = [](http::Endpoint) -> net::awaitable<Result<http::CertificateInfo>> {
      http::CertificateInfo shown;
      shown.subject = "CN=eventstoredb-node";
      shown.not_before = "2024-06-01T00:00:00Z";
      shown.not_after = "2024-06-11T00:00:00Z";
      co_return shown;
    };
    Schedules::SetUp();
  }
  void apply_renewal(const std::string& cron) {
    apply(
        fmt::format("name: renewal\noperation: certificates\nclusters: [prod]\n"
                    "certificates: {{source: csr, authority: company, renew_at: 66, "
                    "renew_jitter: 0}}\n"
                    "schedule: [{{cron: \"{}\", zone: UTC}}]\n"
                    "windows: {{allow: [{{from: \"02:00\", to: \"04:00\", zone: UTC}}]}}\n",
                    cron));
  }
  [[nodiscard]] ScheduleState state() const { return scheduler_->state("renewal", "prod"); }
};

TEST_F(Renewals, ADueTimeBeforeTheRenewalPassesWithItsReason) {
  apply_renewal("0 2 * * *");
  until("2024-06-02 03:00");
  EXPECT_EQ(state().outcome, "not-needed");
  EXPECT_THAT(state().reason, HasSubstr("nothing is to be renewed before 2024-06-07T14:24:00"));
  EXPECT_EQ(state().waiting, "");
  EXPECT_EQ(state().late, "") << "the night of the 8th is early enough";
  until("2024-06-07 03:00");
  EXPECT_EQ(state().outcome, "not-needed");
  const auto settled = state().settled;
  until("2024-06-08 03:00");
  EXPECT_TRUE(state().outcome == "started" || state().waiting.find("no plan") == 0)
      << "now it is planned: " << state().outcome << state().waiting;
  EXPECT_TRUE(state().settled != settled || !state().waiting.empty());
}

TEST_F(Renewals, AnOpeningAfterTheEndIsAnAlertAtOnceAndOnlyOnce) {
  apply_renewal("0 2 * * 0");  // Sundays: the 2nd, the 9th
  until("2024-06-02 03:00");
  EXPECT_EQ(state().late, "");
  apply_renewal("0 2 15 * *");
  until("2024-06-02 03:05");
  EXPECT_THAT(state().late, HasSubstr("ends at Tue 2024-06-11 00:00 UTC, and the next run that "
                                      "needs it can start at Sat 2024-06-15 02:00 UTC"));
  until("2024-06-04 00:00");
  crash();
  boot();
  ASSERT_TRUE(h_.wait_for(h_.executor->observe("prod")).has_value());
  until("2024-06-05 00:00");
  std::size_t raised = 0;
  for (const auto& event : h_.journal->read("schedule/renewal/prod").value()) {
    raised += event.type == events::kScheduleLate ? 1 : 0;
  }
  EXPECT_EQ(raised, 1U);
}

constexpr const char* kNightlyBackup = R"(name: nightly-backup
operation: backup
clusters: [prod]
backup: {repository: main, verify: false, max_age: 26h}
schedule: [{cron: "0 2 * * *", zone: UTC}]
)";

class BackupAge : public Schedules {
 protected:
  void SetUp() override {
    h_.cluster.backups = std::make_unique<test::FakeBackups>(h_.time);
    Schedules::SetUp();
  }
  [[nodiscard]] std::string too_old() const {
    return scheduler_->state("nightly-backup", "prod").too_old;
  }
};

TEST_F(BackupAge, IsThatOfTheNewestBackupThatWasDone) {
  apply(kNightlyBackup);
  until("2024-06-03 12:00");
  ASSERT_THAT(starts(), SizeIs(2));
  EXPECT_EQ(newest(), RunStatus::kDone);
  EXPECT_EQ(too_old(), "");
  h_.cluster.backups->failures = 1'000;
  until("2024-06-04 03:30");
  EXPECT_EQ(newest(), RunStatus::kFailed);
  EXPECT_EQ(too_old(), "") << "the limit is two hours later than the next due time";
  until("2024-06-04 04:30");
  EXPECT_THAT(too_old(), HasSubstr("backup-too-old: the newest backup that was done is of "
                                   "2024-06-03T02:0"));
  EXPECT_THAT(too_old(), HasSubstr("at most 26 h are allowed"));
  crash();
  boot();
  EXPECT_THAT(too_old(), HasSubstr("backup-too-old"));
  h_.cluster.backups->failures = 0;
  until("2024-06-05 03:00");
  EXPECT_EQ(newest(), RunStatus::kDone);
  EXPECT_EQ(too_old(), "");
  std::size_t raised = 0;
  for (const auto& event : h_.journal->read("schedule/nightly-backup/prod").value()) {
    raised += event.type == events::kScheduleTooOld ? 1 : 0;
  }
  EXPECT_EQ(raised, 2U) << "once raised, once over";
}

TEST_F(BackupAge, CountsFromThePolicyWhereThereIsNone) {
  h_.cluster.backups->failures = 1'000;
  apply(kNightlyBackup);
  until("2024-06-03 01:30");
  EXPECT_EQ(too_old(), "");
  until("2024-06-03 03:00");
  EXPECT_THAT(too_old(),
              HasSubstr("no backup was done since the policy was applied at 2024-06-02"));
}

class AfterARestore : public BackupAge {
 protected:
  void SetUp() override {
    h_.cluster.knows_restores = true;
    BackupAge::SetUp();
  }
  void restore() {
    planner::RestorePolicy wanted;
    wanted.repository = "main";
    wanted.scope = planner::RestoreScope::kCluster;
    auto policy = ControllerHarness::quick_policy();
    policy.limits.undo_deadline_ms = 60'000;
    policy.limits.service_deadline_ms = 60'000;
    policy.operation = wanted;
    const auto run = h_.start_scavenge(policy);
    EXPECT_TRUE(h_.run_to_end(run, std::chrono::hours(2)));
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  }
  [[nodiscard]] std::size_t backups() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(h_.executor->runs("prod"), [](const auto& run) {
          return run->operation == "backup" && run->status == RunStatus::kDone;
        }));
  }
};

TEST_F(AfterARestore, ABackupIsMadeAtOnceAndOnce) {
  apply(kNightlyBackup);
  until("2024-06-02 12:00");
  ASSERT_EQ(backups(), 1U);
  restore();
  until("2024-06-02 13:00");
  EXPECT_EQ(backups(), 2U);
  crash();
  boot();
  until("2024-06-02 23:00");
  EXPECT_EQ(backups(), 2U);
  until("2024-06-03 03:00");
  EXPECT_EQ(backups(), 3U) << "as scheduled";
}

TEST_F(BackupAge, IsNoMatterWithoutALimit) {
  h_.cluster.backups->failures = 1'000;
  apply(R"(name: nightly-backup
operation: backup
clusters: [prod]
backup: {repository: main}
schedule: [{cron: "0 2 * * *", zone: UTC}]
)");
  until("2024-06-10 00:00");
  EXPECT_EQ(too_old(), "");
}

}  // namespace
}  // namespace verger::controller
