// Runs of backups over agents that keep a repository in memory.
#include "controller/executor/run_snapshot.h"
#include "controller/operations/operation_modules.h"
#include "tests/support/controller/said_hours.h"
#include "tests/unit/controller_operations/backup_runs.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::BackupRuns;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BackupRun : public BackupRuns {};

TEST_F(BackupRun, CopiesVerifiesDrillsAndDeletes) {
  begin();
  auto policy = wanted();
  policy.keep_last = 1;
  policy.drill_every = 2;
  const auto first = start(policy);
  EXPECT_EQ(end_of(first).status, RunStatus::kDone) << h_.state(first).reason;
  EXPECT_THAT(backups().done,
              ElementsAre("backup n2 g1 full", "verify g1", "drill g1", "retain n2"));
  backups().done.clear();
  const auto run = start(policy);
  EXPECT_EQ(end_of(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g2", "verify g2", "retain n2"));
  const auto shown = report(run);
  EXPECT_EQ(shown["outcome"], "done");
  ASSERT_EQ(shown["backups"].size(), 1U);
  EXPECT_EQ(shown["backups"][0]["generation"], "g2");
  EXPECT_EQ(shown["backups"][0]["parent"], "g1");
  EXPECT_EQ(shown["backups"][0]["reused_bytes"], 900'000);
  EXPECT_GT(shown["backups"][0]["bytes_per_second"], 0);
  EXPECT_EQ(shown["verified"][0]["passed"], true);
  EXPECT_THAT(shown["deleted"], ElementsAre("g1"));
  EXPECT_EQ(shown["freed_bytes"], 1'000'000);
  EXPECT_THAT(shown["notes"], IsEmpty());
}

TEST_F(BackupRun, LeavesItsTimesForMetrics) {
  begin();
  auto policy = wanted();
  policy.drill_every = 1;
  const auto run = start(policy);
  end_of(run);
  const auto runs = h_.executor->runs("prod");
  const auto found = backups::metrics(runs);
  ASSERT_EQ(found.size(), 3U);
  const auto of = [&found](std::string_view name) {
    const auto metric = std::ranges::find(found, name, &OperationMetric::name);
    return metric == found.end() ? -1.0 : metric->value;
  };
  const auto at = backups().find("g1")->checkpoints_at;
  EXPECT_EQ(of("verger_backup_last_success_timestamp_seconds"),
            static_cast<double>(at.value() - kUnixEpoch.value()) / kTicksPerSecond);
  EXPECT_EQ(of("verger_backup_bytes"), 1'000'000);
  EXPECT_GT(of("verger_backup_last_drill_timestamp_seconds"),
            of("verger_backup_last_success_timestamp_seconds"));
  h_.crash();
  h_.boot();
  EXPECT_EQ(backups::metrics(h_.executor->runs("prod")).size(), 3U) << "also after a restart";
}

TEST_F(BackupRun, GivesNodeInstanceClusterAndRepositoryToTheAgent) {
  begin();
  end_of(start(wanted()));  // from now on the repository has an id
  json request;
  h_.cluster.acted = [&request](const test::FakeNode&, const http::Request& sent) {
    if (sent.target == "/agent/v1/operations") {
      auto body = json::parse(sent.body);
      request = body["kind"] == "backup" ? body : request;
    }
  };
  auto policy = wanted();
  policy.rate_bytes = 5'000;
  policy.throttle_percent = 50;
  policy.digests = planner::BackupDigests::kReadable;
  policy.full_every = 1;
  end_of(start(policy));
  ASSERT_TRUE(request.is_object());
  EXPECT_EQ(request["expectedInstanceId"], node("n2").instance);
  const auto& parameters = request["parameters"];
  EXPECT_EQ(parameters["node"], "n2");
  EXPECT_EQ(parameters["cluster"], "prod");
  EXPECT_EQ(parameters["repository"], "main");
  EXPECT_EQ(parameters["repositoryId"], "repository-1");
  EXPECT_EQ(parameters["bytesPerSecond"], 5'000);
  EXPECT_EQ(parameters["throttlePercent"], 50);
  EXPECT_EQ(parameters["digests"], "readable");
  EXPECT_EQ(parameters["full"], true);
}

TEST_F(BackupRun, OfSeveralNodesKeepsTheirChainsApart) {
  begin();
  auto policy = wanted();
  policy.source = planner::BackupSource::kAny;
  policy.copies = 3;
  EXPECT_EQ(end_of(start(policy)).status, RunStatus::kDone);
  EXPECT_THAT(backups().done,
              ElementsAre("backup n2 g1 full", "backup n3 g2 full", "backup n1 g3 full",
                          "verify g1", "verify g2", "verify g3"));
}

TEST_F(BackupRun, OfTheOtherTasksDoesNothingElse) {
  begin();
  end_of(start(wanted()));
  end_of(start(wanted()));
  backups().done.clear();
  auto policy = wanted();
  policy.task = planner::BackupTask::kVerify;
  EXPECT_EQ(end_of(start(policy)).status, RunStatus::kDone);
  policy.task = planner::BackupTask::kDrill;
  policy.generations = "g1";
  EXPECT_EQ(end_of(start(policy)).status, RunStatus::kDone);
  policy.task = planner::BackupTask::kDelete;
  EXPECT_EQ(end_of(start(policy)).status, RunStatus::kDone);
  EXPECT_THAT(backups().done, ElementsAre("verify g2", "drill g1", "retain named"));
  EXPECT_EQ(backups().generations.size(), 1U);
}

// --- there is no plan

TEST_F(BackupRun, NeedsARepositoryThatTheAgentsCanUseAndShare) {
  begin();
  auto policy = wanted();
  policy.repository = "other";
  EXPECT_THAT(refusals(policy), Contains("no-repository n2"));
  backups().at["n2"].error = "s3://backup: 403";
  backups().at["n3"].configured = false;
  EXPECT_THAT(refusals(wanted()),
              ElementsAre("no-up-to-date-source", "repository-unreachable n2", "no-repository n3"));
  backups().at.clear();
  end_of(start(wanted()));
  backups().at["n3"].other_id = "repository-2";
  EXPECT_THAT(refusals(wanted()), ElementsAre("repositories-differ"));
  policy = wanted();
  policy.nodes = "n2";
  EXPECT_THAT(refusals(policy), IsEmpty());
}

TEST_F(BackupRun, NeedsAgentsThatKnowBackups) {
  begin();
  h_.cluster.backups.reset();
  EXPECT_THAT(refusals(wanted()),
              ElementsAre("no-up-to-date-source", "agent-silent n2", "agent-silent n3"));
}

TEST_F(BackupRun, NeedsAScratchDirectoryForADrill) {
  begin();
  for (const auto* name : {"n1", "n2", "n3"}) {
    backups().at[name].drill_problem = "it has no --backup-scratch";
  }
  auto policy = wanted();
  policy.drill_every = 1;
  EXPECT_THAT(refusals(policy), ElementsAre("no-scratch n1", "no-scratch n2", "no-scratch n3"));
  EXPECT_THAT(refusals(wanted()), IsEmpty());
}

TEST_F(BackupRun, OfOneNodeIsMadeWhileAnotherIsDown) {
  begin();
  node("n3").up = false;
  node("n3").agent_up = false;
  EXPECT_EQ(end_of(start(wanted())).status, RunStatus::kDone);
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1"));
}

// --- scavenges

TEST_F(BackupRun, IsRefusedBesideAScavenge) {
  begin();
  scavenge_by_hand("n2");
  auto policy = wanted();
  policy.nodes = "n2";
  EXPECT_THAT(refusals(policy), ElementsAre("no-up-to-date-source", "scavenge-running n2"));
}

TEST_F(BackupRun, StopsAScavengeAndContinuesItAfterTheCopy) {
  begin();
  const auto id = scavenge_by_hand("n2");
  auto policy = wanted();
  policy.nodes = "n2";
  policy.interrupt_scavenge = true;
  const auto run = start(policy);
  ASSERT_TRUE(comes_to("n2", "backup"));
  EXPECT_FALSE(node("n2").running.has_value());
  ASSERT_TRUE(comes_to("n2", "backup_verify"));
  EXPECT_TRUE(node("n2").running.has_value()) << "it does not wait for the check";
  EXPECT_EQ(end_of(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(h_.cluster.copies_beside_scavenges, 0);
  EXPECT_EQ(h_.cluster.points.size(), 1U) << "it resumes to its own point";
  const auto shown = report(run);
  ASSERT_EQ(shown["scavenges"].size(), 1U);
  EXPECT_EQ(shown["scavenges"][0]["scavenge_id"], id);
  EXPECT_EQ(shown["scavenges"][0]["continued"], true);
}

TEST_F(BackupRun, ContinuesTheScavengeAlsoWhereTheCopyFailsOrIsCancelled) {
  begin();
  scavenge_by_hand("n2");
  auto policy = wanted();
  policy.nodes = "n2";
  policy.interrupt_scavenge = true;
  backups().failures = 99;
  const auto failed = start(policy);
  EXPECT_EQ(end_of(failed).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(failed).reason, HasSubstr("no such device"));
  EXPECT_TRUE(node("n2").running.has_value());
  backups().failures = 0;
  const auto cancelled = start(policy);
  ASSERT_TRUE(comes_to("n2", "backup"));
  ASSERT_TRUE(h_.executor->cancel(cancelled, "test", "enough").has_value());
  EXPECT_EQ(end_of(cancelled).status, RunStatus::kCancelled);
  EXPECT_TRUE(node("n2").running.has_value());
  EXPECT_THAT(backups().done, IsEmpty());
}

TEST_F(BackupRun, OverARepositoryThatIsAwayForAnHourIsMadeByTheNext) {
  begin();
  auto policy = wanted();
  policy.nodes = "n2";
  backups().failures = 99;
  backups().takes = std::chrono::minutes(20);
  const auto away = start(policy);
  EXPECT_EQ(end_of(away).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(away).reason, HasSubstr("no such device"));
  EXPECT_THAT(backups().generations, IsEmpty());
  EXPECT_THAT(backups().done, IsEmpty()) << "nothing is verified or deleted for it";
  backups().failures = 0;
  const auto run = start(policy);
  EXPECT_EQ(end_of(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(backups().generations.size(), 1U);
}

TEST_F(BackupRun, SaysWhichScavengeItCouldNotContinue) {
  begin();
  scavenge_by_hand("n2");
  auto policy = wanted();
  policy.nodes = "n2";
  policy.interrupt_scavenge = true;
  const auto run = start(policy);
  ASSERT_TRUE(comes_to("n2", "backup"));
  node("n2").up = false;
  EXPECT_EQ(end_of(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("/admin/scavenge?syncOnly=true"));
  EXPECT_THAT(report(run)["notes"], Contains(HasSubstr("was not seen to run again")));
}

TEST_F(BackupRun, IsMadeAgainWhereAScavengeBeganMeanwhile) {
  begin();
  h_.cluster.points.push_back(1'000);
  h_.cluster.scavenge_takes = std::chrono::seconds(30);
  auto policy = wanted();
  policy.nodes = "n2";
  const auto run = start(policy);
  ASSERT_TRUE(comes_to("n2", "backup"));
  h_.cluster.start_by_hand("n2");
  EXPECT_EQ(end_of(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(h_.cluster.copies_beside_scavenges, 1);
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1"));
}

// --- what is found damaged

TEST_F(BackupRun, WithDamageIsNoSuccessAndDeletesNothing) {
  begin();
  auto policy = wanted();
  policy.keep_last = 1;
  policy.drill_every = 1;
  end_of(start(policy));
  const auto before = h_.executor->runs("prod");
  backups().damages_next = true;
  backups().done.clear();
  const auto run = start(policy);
  const auto state = end_of(run);
  EXPECT_EQ(state.status, RunStatus::kDoneWithDifferences);
  EXPECT_THAT(state.reason, HasSubstr("backup g2 is damaged: chunk-000000.000000: its SHA-256"));
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("backup g2 is damaged")));
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("no older backup was deleted")));
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g2", "verify g2")) << "no drill, none deleted";
  EXPECT_EQ(backups().generations.size(), 2U);
  const auto shown = report(run);
  EXPECT_EQ(shown["outcome"], "damaged");
  EXPECT_EQ(shown["verified"][0]["damage"][0]["path"], "chunk-000000.000000");
  const auto metrics_before = backups::metrics(before);
  const auto metrics_after = backups::metrics(h_.executor->runs("prod"));
  EXPECT_EQ(metrics_before.front().value, metrics_after.front().value)
      << "it does not count as the newest backup";
}

TEST_F(BackupRun, OfAFilterThatLacksStreamsSaysHowTheNodeIsHealed) {
  begin();
  const std::string filter = "index/stream-existence/streamExistenceFilter.dat";
  backups().damages_next = true;
  backups().damage = {{.path = filter, .text = "stream 1 is not in it"},
                      {.path = filter, .text = "stream 2 is not in it"}};
  const auto state = end_of(start(wanted()));
  EXPECT_EQ(state.status, RunStatus::kDoneWithDifferences);
  EXPECT_THAT(state.reason, HasSubstr(filter + ": stream 1 is not in it and 1 more; "));
  EXPECT_THAT(state.reason, HasSubstr("verger heal prod --existence-filter"));
  EXPECT_THAT(state.reason, Not(HasSubstr("full backup")));
}

TEST_F(BackupRun, WithAFailedDrillIsNoSuccessAndDeletesNothing) {
  begin();
  auto policy = wanted();
  policy.keep_last = 1;
  policy.drill_every = 1;
  backups().fails_drills = true;
  const auto run = start(policy);
  const auto state = end_of(run);
  EXPECT_EQ(state.status, RunStatus::kDoneWithDifferences);
  EXPECT_THAT(state.reason, HasSubstr("the drill of backup g1 failed: its digest is another"));
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("the drill of backup g1 failed")));
  EXPECT_EQ(report(run)["outcome"], "drill-failed");
  EXPECT_THAT(backups().done, Not(Contains("retain n2")));
}

TEST_F(BackupRun, OfAnotherNodeThanItWasAskedForFails) {
  begin();
  h_.cluster.dress = [](const test::FakeNode&, const http::Request&, http::Response& response) {
    const auto at = response.body.find(R"("node":"n2")");
    if (at != std::string::npos && response.body.contains("checkpointsAt")) {
      response.body.replace(at, 11, R"("node":"n3")");
    }
  };
  const auto run = start(wanted());
  EXPECT_EQ(end_of(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("of node \"n3\""));
}

// --- while it runs

TEST_F(BackupRun, WaitsUntilItsSourceHasCaughtUp) {
  begin();
  auto policy = wanted();
  policy.nodes = "n2";
  auto made = h_.wait_for(h_.executor->make_plan("prod", policy_of(policy), "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  const auto behind = std::int64_t{64} << 20U;
  for (const auto* name : {"n1", "n3"}) {
    node(name).writer += behind;
  }
  const auto run = h_.wait_for(h_.executor->apply((**made).plan->hash, "test"));
  ASSERT_TRUE(run.has_value());
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_EQ(h_.state(*run).steps.at("backup-n2").status, StepStatus::kWaiting);
  EXPECT_THAT(h_.state(*run).steps.at("backup-n2").reason, HasSubstr("64 MiB"));
  node("n2").writer += behind;
  EXPECT_EQ(end_of(*run).status, RunStatus::kDone);
}

TEST_F(BackupRun, IsContinuedByAnAgentThatDied) {
  begin();
  backups().takes = std::chrono::seconds(30);
  const auto run = start(wanted());
  ASSERT_TRUE(comes_to("n2", "backup"));
  node("n2").agent_up = false;
  h_.run_until([] { return false; }, std::chrono::minutes(1));
  EXPECT_EQ(h_.state(run).steps.at("backup-n2").status, StepStatus::kUnknown);
  node("n2").agent_up = true;
  EXPECT_EQ(end_of(run).status, RunStatus::kDone);
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1"));
}

TEST_F(BackupRun, ThatIsCancelledIsStoppedAtTheAgent) {
  begin();
  backups().takes = std::chrono::minutes(30);
  const auto run = start(wanted());
  ASSERT_TRUE(comes_to("n2", "backup"));
  ASSERT_TRUE(h_.executor->cancel(run, "test", "enough").has_value());
  EXPECT_EQ(end_of(run).status, RunStatus::kCancelled);
  EXPECT_FALSE(is_at("n2", "backup"));
  EXPECT_THAT(backups().done, IsEmpty());
}

TEST_F(BackupRun, ThatIsPausedStopsAndBeginsAgain) {
  begin();
  backups().takes = std::chrono::minutes(5);
  const auto run = start(wanted());
  ASSERT_TRUE(comes_to("n2", "backup"));
  ASSERT_TRUE(h_.executor->pause(run, "test", "lunch").has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(run).status == RunStatus::kPaused; }));
  EXPECT_FALSE(is_at("n2", "backup"));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "test")).has_value());
  EXPECT_EQ(end_of(run).status, RunStatus::kDone);
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1"));
  EXPECT_THAT(h_.state(run).steps.at("backup-n2").outcomes, HasSubstr("stopped-by-us"));
}

TEST_F(BackupRun, StopsAtTheEndOfItsHoursAndBeginsAgainInTheNext) {
  test::SaidHours hours;
  h_.make_hours = [&hours](Journal&, ControllerEpoch) { return &hours; };
  begin();
  backups().takes = std::chrono::minutes(5);
  const auto run = start(wanted());
  ASSERT_TRUE(comes_to("n2", "backup"));
  hours.open = false;
  ASSERT_TRUE(h_.run_until([&] { return !is_at("n2", "backup"); }));
  h_.run_until([] { return false; }, std::chrono::minutes(10));
  EXPECT_THAT(backups().done, IsEmpty());
  hours.open = true;
  EXPECT_EQ(end_of(run).status, RunStatus::kDone);
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1"));
}

TEST_F(BackupRun, WithoutASkippedNodeDrillsAndDeletesNothingOfIt) {
  begin();
  backups().takes = std::chrono::minutes(5);
  auto policy = wanted();
  policy.drill_every = 1;
  policy.keep_last = 1;
  backups().at["n2"].drill_problem = "it has no --backup-scratch";
  const auto run = start(policy);
  ASSERT_TRUE(comes_to("n2", "backup"));
  ASSERT_TRUE(
      h_.wait_for(h_.executor->skip_node(run, "n2", "test", "its disk is slow")).has_value());
  EXPECT_EQ(end_of(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_THAT(backups().done, IsEmpty());
  EXPECT_THAT(report(run)["notes"], Contains(HasSubstr("no backup of n2 was made")));
}

// --- the stopped server

class OfflineBackup : public BackupRuns {
 protected:
  static planner::BackupPolicy offline() {
    auto out = wanted();
    out.mode = planner::BackupMode::kOffline;
    return out;
  }
};

TEST_F(OfflineBackup, StopsAFollowerAndStartsItAgain) {
  begin();
  const auto run = start(offline());
  EXPECT_EQ(end_of(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(node("n2").stops, 1);
  EXPECT_TRUE(node("n2").up);
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1"));
}

TEST_F(OfflineBackup, ThatIsCancelledLeavesTheServerRunning) {
  begin();
  backups().takes = std::chrono::minutes(30);
  const auto run = start(offline());
  ASSERT_TRUE(comes_to("n2", "offline_backup"));
  EXPECT_FALSE(node("n2").up);
  ASSERT_TRUE(h_.executor->cancel(run, "test", "enough").has_value());
  EXPECT_EQ(end_of(run).status, RunStatus::kCancelled);
  EXPECT_TRUE(node("n2").up);
  EXPECT_THAT(backups().done, IsEmpty());
}

TEST_F(OfflineBackup, NeverStopsTheLeader) {
  begin();
  auto policy = offline();
  policy.nodes = "n1";
  EXPECT_THAT(refusals(policy), Contains("offline-leader n1"));
}

TEST_F(BackupRun, OfADiskSnapshotIsMadeBesideAScavenge) {
  begin();
  scavenge_by_hand("n2");
  auto policy = wanted();
  policy.nodes = "n2";
  policy.mode = planner::BackupMode::kSnapshot;
  EXPECT_THAT(refusals(policy), ElementsAre("no-up-to-date-source", "no-snapshots n2"));
  backups().at["n2"].snapshot_problem.clear();
  const auto run = start(policy);
  EXPECT_EQ(end_of(run).status, RunStatus::kDone) << h_.state(run).reason;
  ASSERT_EQ(backups().generations.size(), 1U);
  EXPECT_EQ(backups().generations.front().state, "frozen");
}

}  // namespace
}  // namespace verger::controller
