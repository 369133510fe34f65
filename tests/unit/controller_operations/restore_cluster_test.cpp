// A whole cluster from one backup: all of it or nothing, and never two histories at once.
#include <fmt/format.h>

#include "planner/operations.h"
#include "tests/unit/controller_operations/restore_run.h"

namespace verger::controller {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RestoreCluster : public test::RestoreRun {
 protected:
  void stop_by_hand(const std::string& name) {
    node(name).up = false;
    node(name).state = api::NodeState::kUnknown;
  }
};

TEST_F(RestoreCluster, AllNodesContinueFromTheBackup) {
  h_.cluster.add_replica();
  begin();
  const auto run = start(of_cluster());
  expect_restored(run);
  for (const auto& each : h_.cluster.nodes) {
    EXPECT_EQ(each.files.restores, 1) << each.name;
    EXPECT_EQ(each.files.starts, 1) << each.name;
    ASSERT_TRUE(each.files.kept.has_value()) << each.name;
    EXPECT_EQ(each.files.kept->history, "own");
  }
  const auto shown = report(run);
  EXPECT_EQ(shown["generation"], "g1");
  EXPECT_FALSE(shown["leader"].get<std::string>().empty());
  EXPECT_TRUE(shown["committed_at"].is_string());
  ASSERT_EQ(shown["nodes"].size(), 4U);
  EXPECT_EQ(shown["nodes"][0]["state"], "restored");
  EXPECT_EQ(shown["nodes"][0]["lost_bytes"], 2'000) << "10,000 were written, the backup has 8,000";
  EXPECT_EQ(shown["nodes"][0]["old_files"], "/db/old-before-g1");
  EXPECT_THAT(shown["notes"].dump(),
              AllOf(HasSubstr("the next backup of each node reads everything again"),
                    HasSubstr("verger restore discard-old prod --generation g1")));
}

TEST_F(RestoreCluster, ALongRestoreRaisesNoAlertThatNodesAreSilent) {
  h_.cluster.restore_takes = std::chrono::minutes(30);
  begin();
  const auto run = start(of_cluster());
  expect_restored(run);
  EXPECT_THAT(h_.alerts(run), IsEmpty()) << "an operator would start what must stay stopped";
}

TEST_F(RestoreCluster, IsPlannedAndDoneWhileAllIsDown) {
  for (const auto* name : {"n1", "n2", "n3"}) {
    stop_by_hand(name);
  }
  begin();
  const auto run = start(of_cluster());
  expect_restored(run);
}

TEST_F(RestoreCluster, IsDoneWhileNoNodeLeads) {
  stop_by_hand("n1");
  stop_by_hand("n2");
  node("n3").state = api::NodeState::kUnknown;
  begin();
  const auto run = start(of_cluster());
  expect_restored(run);
}

TEST_F(RestoreCluster, WaitsForNoHours) {
  planner::Policy policy = of_cluster();
  begin();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_THAT((*made)->plan->notes, Contains(HasSubstr("does not wait for maintenance hours")));
  EXPECT_THAT((*made)->plan->notes.front(), HasSubstr("ALL EVENTS WRITTEN AFTER"));
}

TEST_F(RestoreCluster, ARestoreThatFailsOnOneNodeIsUndoneOnAll) {
  files("n2").failing_restores = 5;
  begin();
  const auto run = start(of_cluster());
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("restore-n2"));
  EXPECT_EQ(files("n1").reverts, 1);
}

TEST_F(RestoreCluster, ARestoreThatFailsOnceIsRepeated) {
  files("n2").failing_restores = 1;
  begin();
  expect_restored(start(of_cluster()));
}

TEST_F(RestoreCluster, AnAgentThatDiesMeanwhileIsWaitedFor) {
  begin();
  when("restore", "n2", [this] { node("n2").agent_up = false; });
  const auto run = start(of_cluster());
  ASSERT_TRUE(h_.run_until([this] { return files("n1").restores == 1; }));
  h_.run_until([] { return false; }, std::chrono::minutes(5));
  EXPECT_FALSE(node("n1").up) << "n2 is not restored";
  node("n2").agent_up = true;
  expect_restored(run);
}

TEST_F(RestoreCluster, AnAgentThatStaysDeadLeavesItsNodeStoppedAndTheOthersAsTheyWere) {
  begin();
  node("n2").database_directory.path = "/db/n2";
  when("restore", "n2", [this] { node("n2").agent_up = false; });
  auto policy = of_cluster();
  planner::restore_of(policy).restore_deadline_ms = 300'000;
  const auto run = start(policy);
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(files("n1").history, "own");
  EXPECT_TRUE(node("n1").up && node("n3").up);
  EXPECT_FALSE(node("n2").up);
  EXPECT_FALSE(h_.cluster.mixed_histories);
  const auto shown = report(run);
  EXPECT_EQ(shown["outcome"], "not-undone");
  EXPECT_THAT(shown["nodes"][1]["commands"].dump(),
              HasSubstr("verger-db restore /db/n2 --revert g1"));
}

TEST_F(RestoreCluster, AStartSaysWhatItWaitsFor) {
  begin();
  const auto all_down = [this] {
    for (auto& each : h_.cluster.nodes) {
      each.up = false;
    }
  };
  when("start_service", "n2", [this, all_down] {
    all_down();
    node("n2").agent_up = false;
  });
  const auto run = start(of_cluster());
  const auto shown = [this, &run] { return h_.state(run).steps.at("start-n2").progress->dump(); };
  EXPECT_TRUE(h_.run_until([&] {
    all_down();
    return shown().contains(":2114: connection refused");
  })) << shown();
  // Alone it has no majority.
  node("n2").up = true;
  node("n2").state = api::NodeState::kUnknown;
  EXPECT_TRUE(h_.run_until([&] { return shown().contains("waits for a leader"); })) << shown();
}

TEST_F(RestoreCluster, ANodeThatStartsByItselfStopsTheRun) {
  begin();
  when("restore", "n1", [this] { h_.cluster.start_by_itself("n2"); });
  const auto run = start(of_cluster());
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n2 runs, although it was stopped"));
}

TEST_F(RestoreCluster, AServerThatAnsweredALookRightBeforeItStoppedDoesNotRunAgain) {
  begin();
  bool still_up = false;
  when("stop_server", "n2", [this, &still_up] {
    node("n2").up = true;
    still_up = true;
  });
  // The look has come before the question of what became of the operation.
  h_.cluster.dress = [this, &still_up](const test::FakeNode& of, const http::Request& request,
                                       const http::Response&) {
    if (still_up && of.name == "n2" && request.method == "GET" &&
        request.target.starts_with("/agent/v1/operations/")) {
      still_up = false;
      node("n2").up = false;
    }
  };
  const auto run = start(of_cluster());
  expect_restored(run);
  EXPECT_EQ(h_.state(run).steps.at("stop-n2").attempt, 1);
  EXPECT_THAT(h_.state(run).steps.at("stop-n2").outcomes, Not(HasSubstr("started-again")));
}

TEST_F(RestoreCluster, AServerThatStartsAgainAfterItsStopIsStoppedOnceMore) {
  begin();
  when("stop_server", "n2", [this] { h_.cluster.start_by_itself("n2"); });
  const auto run = start(of_cluster());
  expect_restored(run);
  EXPECT_EQ(h_.state(run).steps.at("stop-n2").attempt, 2);
  EXPECT_THAT(h_.state(run).steps.at("stop-n2").outcomes, HasSubstr("started-again"));
}

TEST_F(RestoreCluster, ARestoredNodeThatStartsByItselfIsStoppedBeforeOthersComeBack) {
  h_.cluster.restore_takes = std::chrono::seconds(20);
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(h_.run_until([this] { return files("n2").restoring.has_value(); }));
  // n2 is done long before the others.
  files("n2").restoring->ends = h_.time.monotonic();
  ASSERT_TRUE(h_.run_until([this] { return files("n2").restores == 1; }));
  h_.cluster.start_by_itself("n2");
  expect_undone(run);
}

TEST_F(RestoreCluster, ACancelledRunPutsAllBack) {
  h_.cluster.restore_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(h_.run_until([this] { return files("n3").restoring.has_value(); }));
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  expect_undone(run, RunStatus::kCancelled);
  for (const auto& each : h_.cluster.nodes) {
    EXPECT_EQ(each.files.reverts, 1) << each.name << " keeps what was copied";
  }
}

TEST_F(RestoreCluster, APauseComesAfterTheServersAreUp) {
  h_.cluster.restore_takes = std::chrono::minutes(2);
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(h_.run_until([this] { return files("n3").restoring.has_value(); }));
  ASSERT_TRUE(h_.executor->pause(run, "test", "", PauseMode::kNow).has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(run).status == RunStatus::kPaused; }));
  EXPECT_TRUE(all_up());
  EXPECT_THAT(histories(), Each("g1"));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "test")).has_value());
  expect_restored(run);
}

TEST_F(RestoreCluster, ASkippedNodeUndoesAll) {
  h_.cluster.restore_takes = std::chrono::minutes(2);
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(h_.run_until([this] { return files("n3").restoring.has_value(); }));
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n3", "test", "")).has_value());
  expect_undone(run);
}

TEST_F(RestoreCluster, AServerThatDoesNotStartAtOnceIsStartedAgain) {
  files("n2").failing_starts = 3;
  begin();
  expect_restored(start(of_cluster()));
}

TEST_F(RestoreCluster, AfterTheFirstStartNothingIsPutBack) {
  files("n2").failing_starts = 1'000;
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(h_.run_until([this] { return files("n1").starts == 1; }));
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  ASSERT_TRUE(ends(run));
  EXPECT_THAT(histories(), Each("g1"));
  EXPECT_TRUE(node("n1").up && node("n3").up);
  EXPECT_FALSE(h_.cluster.mixed_histories);
  const auto shown = report(run);
  EXPECT_EQ(shown["outcome"], "started");
  EXPECT_THAT(shown["nodes"][0]["reason"].get<std::string>(), HasSubstr("not restored by the run"));
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("restore-n1 could not be undone")));
}

TEST_F(RestoreCluster, ARevertThatFailsKeepsItsNodeStopped) {
  files("n1").failing_restores = 5;
  files("n2").failing_reverts = 1'000;
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(report(run)["outcome"], "not-undone");
  EXPECT_EQ(files("n1").history, "own");
  EXPECT_TRUE(node("n1").up);
  EXPECT_FALSE(node("n2").up) << "it has the backup's files";
  EXPECT_FALSE(h_.cluster.mixed_histories);
}

TEST_F(RestoreCluster, WhatWasStoppedBeforeStaysStoppedWhereAllIsUndone) {
  stop_by_hand("n3");
  files("n2").failing_restores = 5;
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(ends(run));
  EXPECT_THAT(histories(), Each("own"));
  EXPECT_TRUE(node("n1").up && node("n2").up);
  EXPECT_FALSE(node("n3").up);
  EXPECT_THAT(report(run)["notes"].dump(), HasSubstr("n3 was stopped before the run"));
}

TEST_F(RestoreCluster, OldFilesGoAtTheEndWhereThatIsWanted) {
  begin();
  auto policy = of_cluster();
  planner::restore_of(policy).keep_old = false;
  const auto run = start(policy);
  expect_restored(run);
  for (const auto& each : h_.cluster.nodes) {
    EXPECT_FALSE(each.files.kept.has_value()) << each.name;
  }
  EXPECT_EQ(report(run)["nodes"][0]["discarded_bytes"], 900'000);
  EXPECT_THAT(report(run)["notes"].dump(), Not(HasSubstr("discard-old")));
}

TEST_F(RestoreCluster, OldFilesAreDiscardedLater) {
  begin();
  expect_restored(start(of_cluster()));
  planner::RestorePolicy wanted;
  wanted.task = planner::RestoreTask::kDiscardOld;
  wanted.generation = "g1";
  const auto run = start(policy_of(wanted));
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(report(run)["outcome"], "discarded");
  EXPECT_FALSE(files("n1").kept || files("n2").kept || files("n3").kept);
}

TEST_F(RestoreCluster, AnOlderEpochIsNoOtherClusterAfterwards) {
  for (auto& each : h_.cluster.nodes) {
    each.database.clear();  // so that the cluster is known by its epochs
  }
  begin();
  for (int i = 0; i < 4; ++i) {
    h_.cluster.elect("n1");
  }
  ASSERT_THAT(refusals(of_cluster()), IsEmpty());
  ASSERT_EQ(h_.registry->find("prod")->epoch.number, 5);
  expect_restored(start(of_cluster()));
  const auto snapshot = h_.wait_for(h_.executor->observe("prod"));
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->leader()->epoch_number, 1);
  EXPECT_EQ(snapshot->wrong_cluster, "");
}

TEST_F(RestoreCluster, AnotherDatabaseIsReplacedOnlyWhereThatIsSaid) {
  begin();
  ASSERT_THAT(refusals(of_cluster()), IsEmpty());  // learns which database it is
  node("n2").database = "db-9";
  EXPECT_THAT(refusals(of_cluster()), ElementsAre("wrong-node n2"));
  auto policy = of_cluster();
  planner::restore_of(policy).replace_database = true;
  when("restore", "n2", [this] { node("n2").database = "db-1"; });
  expect_restored(start(policy));
}

TEST_F(RestoreCluster, TheNewestSoundBackupIsTheLatest) {
  auto damaged = test::fake_backup("g3", 3);
  damaged.last_verify = api::BackupCheckSummary{
      .at = damaged.checkpoints_at, .passed = false, .summary = "2 files", .duration_ms = 5};
  auto foreign = test::fake_backup("g4", 4);
  foreign.cluster = "staging";
  h_.cluster.restorable = {test::fake_backup("g2", 2), test::fake_backup(), damaged, foreign};
  begin();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", of_cluster(), "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  const auto* step = (*made)->plan->find_step("restore-n1");
  EXPECT_EQ(step->parameters.at("generation"), planner::Json("g2"));

  auto policy = of_cluster();
  for (const auto& [generation, code] :
       {std::pair("g3", "generation-damaged"), std::pair("g4", "another-cluster"),
        std::pair("g9", "no-generation"), std::pair("g", "no-generation")}) {
    planner::restore_of(policy).generation = generation;
    EXPECT_THAT(refusals(policy), Contains(code)) << generation;
  }
}

TEST_F(RestoreCluster, WhatAgentsSayRefusesThePlan) {
  begin();
  const auto refused = [this] { return refusals(of_cluster()); };
  ASSERT_THAT(refused(), IsEmpty());
  files("n2").has_repository = false;
  EXPECT_THAT(refused(), ElementsAre("no-repository n2"));
  files("n2").has_repository = true;
  files("n2").repository_error = "no route to host";
  EXPECT_THAT(refused(), ElementsAre("repository-unreachable n2"));
  files("n2").repository_error.clear();
  files("n2").repository_id = "r-2";
  EXPECT_THAT(refused(), ElementsAre("repositories-differ"));
  files("n2").repository_id = "r-1";
  files("n2").generation_damage = "its manifest is cut";
  EXPECT_THAT(refused(), ElementsAre("generation-damaged n2"));
  files("n2").generation_damage.clear();
  node("n2").disk_free = 1'000;
  EXPECT_THAT(refused(), ElementsAre("disk-too-small n2"));
  node("n2").disk_free = std::int64_t{1} << 39U;
  node("n2").service_control = false;
  EXPECT_THAT(refused(), ElementsAre("no-service-control n2"));
  node("n2").service_control = true;
  node("n2").agent_up = false;
  EXPECT_THAT(refused(), ElementsAre("agent-gone n2"));
  node("n2").agent_up = true;
  h_.cluster.knows_restores = false;
  EXPECT_THAT(refused(), Contains("agent-cannot-restore n2"));
}

TEST_F(RestoreCluster, TheSameBackupAgainNeedsTheFormerFilesGone) {
  begin();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", of_cluster(), "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  files("n2").kept = test::FakeFiles::Kept{.generation = "g1", .history = "lost", .writer = 3};
  EXPECT_THAT(refusals(of_cluster()), ElementsAre("former-files-kept n2"));
  // Reverted to files that are not its own, n2 would lose what it has.
  const auto run = h_.wait_for(h_.executor->apply((*made)->plan->hash, "test"));
  ASSERT_TRUE(run.has_value());
  ASSERT_TRUE(ends(*run));
  EXPECT_EQ(h_.state(*run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(*run).reason, HasSubstr("verger restore discard-old"));
  EXPECT_EQ(report(*run)["outcome"], "unchanged");
  EXPECT_EQ(node("n1").stops + node("n2").stops + node("n3").stops, 0);
  EXPECT_EQ(files("n2").reverts, 0);
}

TEST_F(RestoreCluster, FilesKeptMeanwhileAreNotTakenForThoseOfTheRun) {
  when("stop_server", "n2", [this] {
    files("n2").kept = test::FakeFiles::Kept{.generation = "g1", .history = "lost", .writer = 3};
  });
  begin();
  const auto run = start(of_cluster());
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(files("n2").reverts, 0);
  EXPECT_THAT(histories(), Each("own"));
  EXPECT_TRUE(all_up());
}

TEST_F(RestoreCluster, ABackupThatGoesBetweenPlanAndRunStopsNoServer) {
  begin();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", of_cluster(), "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  h_.cluster.restorable.clear();
  const auto run = h_.wait_for(h_.executor->apply((*made)->plan->hash, "test"));
  ASSERT_TRUE(run.has_value());
  ASSERT_TRUE(ends(*run));
  EXPECT_EQ(h_.state(*run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(*run).reason, HasSubstr("backup g1 is gone"));
  EXPECT_EQ(report(*run)["outcome"], "unchanged");
  EXPECT_EQ(node("n1").stops + node("n2").stops + node("n3").stops, 0);
}

TEST_F(RestoreCluster, NodesThatComeAndGoDoNotMakeThePlanStale) {
  begin();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", of_cluster(), "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  h_.cluster.restart("n2");
  h_.cluster.elect("n3");
  const auto run = h_.wait_for(h_.executor->apply((*made)->plan->hash, "test"));
  ASSERT_TRUE(run.has_value()) << run.error().error.message;
  expect_restored(*run);
}

}  // namespace
}  // namespace verger::controller
