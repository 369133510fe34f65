#include "controller/scheduler/scheduler.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/scheduler/next_times.h"
#include "planner/restore/restore_policy.h"
#include "tests/support/controller/controller_harness.h"
#include "tests/unit/controller_scheduler/times.h"

// Virtual time begins on Sunday, 2024-06-02, at 00:00 UTC.
namespace verger::controller {
namespace {

using namespace testing;
using test::ControllerHarness;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Schedules : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.cluster.scavenge_takes = std::chrono::minutes(10);
    h_.options.poll_interval = std::chrono::seconds(60);
    h_.make_hours = [this](Journal& journal, ControllerEpoch epoch) {
      book_ = std::make_unique<PolicyBook>(journal, epoch, ControllerHarness::quick_policy());
      EXPECT_TRUE(book_->load().has_value());
      return book_.get();
    };
    boot();
    h_.register_cluster();
  }
  void TearDown() override {
    scheduler_.reset();
    h_.crash();
  }
  void boot() {
    h_.boot();
    scheduler_ = std::make_unique<Scheduler>(SchedulerParts{.executor = h_.context->get_executor(),
                                                            .journal = *h_.journal,
                                                            .registry = *h_.registry,
                                                            .book = *book_,
                                                            .runs = *h_.executor,
                                                            .network = h_.network(),
                                                            .epoch = h_.epoch,
                                                            .tick = std::chrono::seconds(60)});
    EXPECT_TRUE(scheduler_->load().has_value());
    scheduler_->start();
  }
  void crash() {
    scheduler_.reset();
    h_.crash();
  }
  void apply(const std::string& yaml) {
    auto policy = book_->parse(yaml);
    ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
    const auto stored = book_->apply(*std::move(policy), "me");
    ASSERT_TRUE(stored.has_value()) << stored.error().message;
  }
  /// Until the wall clock shows it.
  void until(const std::string& time) {
    const auto target = to_ticks(at(time));
    h_.run_until([&] { return h_.time.now() >= target; }, std::chrono::hours(24 * 400));
  }
  [[nodiscard]] std::vector<std::string> starts() const {
    std::vector<std::string> out;
    for (const auto& run : h_.executor->runs("prod")) {
      out.insert(out.begin(), format_ticks(run->started_at).substr(0, 16));
    }
    return out;
  }
  [[nodiscard]] RunStatus newest() const { return h_.executor->runs("prod").front()->status; }

  std::unique_ptr<PolicyBook> book_;
  std::unique_ptr<Scheduler> scheduler_;
  ControllerHarness h_;
};

constexpr const char* kNightly = R"(name: nightly
clusters: [prod]
schedule: [{cron: "0 2 * * *", zone: UTC}]
windows: {allow: [{from: "02:00", to: "04:00", zone: UTC}]}
)";

TEST_F(Schedules, StartWhatIsDueInsideItsWindow) {
  apply(kNightly);
  until("2024-06-02 01:59");
  EXPECT_THAT(starts(), SizeIs(0));
  until("2024-06-02 03:30");
  ASSERT_THAT(starts(), SizeIs(1));
  EXPECT_THAT(starts()[0], ::testing::StartsWith("2024-06-02T02:0"));
  EXPECT_EQ(newest(), RunStatus::kDone);
  const auto run = h_.executor->runs("prod").front();
  EXPECT_EQ(run->started_by, "policy/nightly");
  EXPECT_EQ(h_.state(run->id).plan->policy.name, "nightly");
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "started");
  until("2024-06-03 01:59");
  EXPECT_THAT(starts(), SizeIs(1));
  until("2024-06-03 02:30");
  EXPECT_THAT(starts(), SizeIs(2));
}

TEST_F(Schedules, AWindowThatClosesStopsTheRunAndTheNextOneTakesItUp) {
  h_.cluster.scavenge_takes = std::chrono::minutes(50);  // three of them: more than two hours
  apply(kNightly);
  until("2024-06-02 04:02");
  for (const auto& node : h_.cluster.nodes) {
    EXPECT_FALSE(node.running.has_value()) << node.name;
    EXPECT_EQ(node.priority, 0) << node.name;
  }
  EXPECT_EQ(newest(), RunStatus::kWaiting);
  until("2024-06-03 03:59");
  EXPECT_THAT(starts(), SizeIs(1)) << "a cycle longer than its period is not started twice";
  EXPECT_EQ(newest(), RunStatus::kDone);
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "dropped");
  EXPECT_THAT(scheduler_->state("nightly", "prod").reason, HasSubstr("of policy nightly is"));
}

TEST_F(Schedules, ARunThatCannotResumeAtTheEndOfAPauseIsReportedAndTriedAgain) {
  apply(kNightly);
  until("2024-06-02 02:05");
  ASSERT_THAT(starts(), SizeIs(1));
  const auto run = h_.executor->runs("prod").front()->id;
  ASSERT_TRUE(h_.executor
                  ->pause_cluster("prod", "me", "patches", PauseMode::kNow,
                                  to_ticks(at("2024-06-02 02:30")))
                  .has_value());
  h_.cluster.node("n3").version = "24.10.0";
  until("2024-06-02 02:35");
  EXPECT_EQ(newest(), RunStatus::kPaused);
  EXPECT_EQ(h_.state(run).open_alerts(), 1U);
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("24.10.0")));
  h_.cluster.node("n3").version = "24.6.0";
  until("2024-06-02 03:58");
  EXPECT_EQ(newest(), RunStatus::kDone) << "without anybody";
  EXPECT_EQ(h_.state(run).open_alerts(), 0U);
}

TEST_F(Schedules, ARunThatAPersonPausedMeanwhileDoesNotResumeWithItsCluster) {
  apply(kNightly);
  until("2024-06-02 02:05");
  const auto run = h_.executor->runs("prod").front()->id;
  ASSERT_TRUE(h_.executor
                  ->pause_cluster("prod", "me", "patches", PauseMode::kNow,
                                  to_ticks(at("2024-06-02 02:30")))
                  .has_value());
  until("2024-06-02 02:10");
  ASSERT_TRUE(h_.executor->pause(run, "ann", "not tonight").has_value());
  until("2024-06-02 03:30");
  EXPECT_EQ(newest(), RunStatus::kPaused);
}

TEST_F(Schedules, ScheduleTimePassesWhileTheControllerIsDown) {
  apply(kNightly);
  until("2024-06-02 01:00");
  crash();
  h_.time.jump(std::chrono::hours(2));  // 03:00: still inside
  boot();
  until("2024-06-02 03:03");
  EXPECT_THAT(starts(), SizeIs(1));
  until("2024-06-02 23:00");
  crash();
  h_.time.jump(std::chrono::hours(10));  // 09:00: the opening has passed
  boot();
  until("2024-06-03 09:05");
  EXPECT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "dropped");
}

TEST_F(Schedules, ACrashRightAfterTheStartStartsNothingTwice) {
  apply(kNightly);
  ASSERT_TRUE(
      h_.run_until([this] { return !h_.executor->runs("prod").empty(); }, std::chrono::hours(3)));
  crash();
  boot();
  until("2024-06-02 03:30");
  EXPECT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(scheduler_->state("nightly", "prod").outcome, "started");
  EXPECT_EQ(scheduler_->state("nightly", "prod").run, h_.executor->runs("prod").front()->id);
}

TEST_F(Schedules, WaitForThePlanToBePossible) {
  h_.cluster.node("n3").up = false;
  apply(kNightly);
  until("2024-06-02 02:10");
  EXPECT_THAT(starts(), SizeIs(0));
  EXPECT_THAT(scheduler_->state("nightly", "prod").waiting, HasSubstr("n3: http"));
  h_.cluster.node("n3").up = true;
  until("2024-06-02 02:20");
  EXPECT_THAT(starts(), SizeIs(1));
}

TEST_F(Schedules, AMoveOfTheLeaderMayNeedAPerson) {
  apply(std::string(kNightly) + "resign: needs-approval\n");
  until("2024-06-02 02:10");
  EXPECT_THAT(starts(), SizeIs(0));
  const auto state = scheduler_->state("nightly", "prod");
  EXPECT_EQ(state.outcome, "needs-approval");
  ASSERT_TRUE(h_.wait_for(h_.executor->apply(state.plan, "me")).has_value());
  until("2024-06-02 03:30");
  EXPECT_EQ(newest(), RunStatus::kDone);
}

TEST_F(Schedules, PolicyChangedMidRun) {
  apply(kNightly);
  until("2024-06-02 02:05");
  ASSERT_THAT(starts(), SizeIs(1));
  const auto hash = h_.executor->runs("prod").front()->plan;
  // A freeze, from now on: it holds at once; the plan that runs stays what it was.
  apply(R"(name: nightly
clusters: [prod]
schedule: [{cron: "0 2 * * *", zone: UTC}]
windows:
  allow: [{from: "02:00", to: "04:00", zone: UTC}]
  deny: [{name: freeze, from: "2024-06-02", to: "2024-06-04", zone: UTC}]
parameters: {threads: 4}
)");
  until("2024-06-02 03:59");
  EXPECT_EQ(newest(), RunStatus::kWaiting);
  EXPECT_THAT(h_.executor->active_runs("prod").front()->reason, HasSubstr("freeze"));
  for (const auto& node : h_.cluster.nodes) {
    EXPECT_FALSE(node.running.has_value());
  }
  until("2024-06-04 03:59");
  EXPECT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(newest(), RunStatus::kDone);
  EXPECT_EQ(h_.executor->runs("prod").front()->plan, hash);
}

TEST_F(Schedules, DstRepeatsTheDueHourAndNothingWorksOutsideTheWindow) {
  // Over the night of 27 October 2024, in which Berlin has 02:30 twice.
  h_.cluster.scavenge_takes = std::chrono::minutes(50);
  crash();
  h_.time.jump(at("2024-10-25 12:00") - at("2024-06-02 00:00"));
  boot();
  const auto berlin = zone("Europe/Berlin");
  int outside = 0;
  h_.cluster.acted = [&](const test::FakeNode&, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      const auto local = berlin.to_local(to_instant(h_.time.now()));
      const auto hour =
          (local - std::chrono::floor<std::chrono::days>(local)) / std::chrono::hours(1);
      outside += hour >= 2 && hour < 4 ? 0 : 1;
    }
  };
  apply(R"(name: nightly
clusters: [prod]
schedule: [{cron: "30 2 * * *", zone: Europe/Berlin}]
windows: {allow: [{from: "02:00", to: "04:00", zone: Europe/Berlin}]}
)");
  until("2024-10-28 03:30");
  // 26: 02:30 CEST. 27: the run of the 26th still works at the first 02:30, and the second is none.
  const auto begun = starts();
  ASSERT_GE(begun.size(), 2U);
  EXPECT_THAT(begun[0], ::testing::StartsWith("2024-10-26T00:3"));
  for (const auto& start : begun) {
    EXPECT_THAT(start, ::testing::Not(::testing::StartsWith("2024-10-27T01:3")))
        << "the repeated hour is not due again";
  }
  EXPECT_EQ(outside, 0);
}

TEST_F(Schedules, PeakHoursOfAnyPolicyHoldForAPersonsRunToo) {
  apply(R"(name: peak
clusters: [prod]
windows: {deny: [{name: peak, from: "00:30", to: "05:00", zone: UTC}]}
)");
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  until("2024-06-02 00:33");
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("\"peak of policy peak\""));
  until("2024-06-02 06:00");
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
}

TEST_F(Schedules, APauseOfTheClusterEndsByItselfAndItsRunResumes) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  until("2024-06-02 00:05");
  ASSERT_TRUE(
      h_.executor
          ->pause_cluster("prod", "me", "audit", PauseMode::kNow, to_ticks(at("2024-06-02 02:00")))
          .has_value());
  until("2024-06-02 01:59");
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
  crash();
  boot();
  EXPECT_TRUE(h_.registry->find("prod")->paused);
  until("2024-06-02 03:00");
  EXPECT_FALSE(h_.registry->find("prod")->paused);
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
}

TEST_F(Schedules, AClusterResumesOnlyTheRunThatPausedWithIt) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  until("2024-06-02 00:05");
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  until("2024-06-02 00:08");
  ASSERT_TRUE(
      h_.executor->pause_cluster("prod", "me", "", PauseMode::kPolicy, std::nullopt).has_value());
  const auto refused = h_.wait_for(h_.executor->resume(run, "me"));
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume_cluster("prod", "me")).has_value());
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
}

TEST_F(Schedules, TellTheNextOpeningsAndDueTimes) {
  apply(kNightly);
  const auto next = next_times(*book_, *h_.registry->find("prod"), at("2024-06-02 03:00"), 10);
  int opens = 0;
  int due = 0;
  for (const auto& each : next) {
    (each.kind == NextTime::Kind::kOpens ? opens : due) += 1;
  }
  EXPECT_EQ(opens, 10);
  EXPECT_EQ(due, 10);
  EXPECT_EQ(text_of(next[0].at), "2024-06-02 02:00") << "the opening that is under way";
  EXPECT_EQ(text_of(*next[0].until), "2024-06-02 04:00");
}

TEST_F(Schedules, APolicyIsKeptAndItsRevisionGuardsIt) {
  apply(kNightly);
  const auto first = book_->find("nightly").value();
  apply(std::string(kNightly) + "enabled: false\n");
  const auto late = book_->apply(first.policy, "other", first.revision);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kConflict);
  crash();
  boot();
  EXPECT_FALSE(book_->find("nightly").value().policy.enabled);
  until("2024-06-02 02:10");
  EXPECT_THAT(starts(), SizeIs(0));
  ASSERT_TRUE(book_->remove("nightly", "me").has_value());
  EXPECT_EQ(book_->find("nightly").error().code, Errc::kNotFound);
}

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
