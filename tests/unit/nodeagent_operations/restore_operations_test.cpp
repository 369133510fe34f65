#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/backup/kept_files.h"
#include "tests/unit/nodeagent_operations/restore_case.h"

/// A server that is stopped and stays so, and a backup restored onto its files, with agents that
/// die in between.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string state_of(const json& status) { return status.value("state", "none"); }
std::string code_of(const json& status) { return status.value("errorCode", ""); }

TEST(StopServer, KeepsTheServerStoppedOverARestartOfTheAgentUntilItIsStarted) {
  RestoreCase agent;
  EXPECT_EQ(state_of(agent.run("stop_server")), "done") << agent.answer;
  EXPECT_FALSE(agent.running);
  agent.open();
  agent.world_.run_for(milliseconds(600'000));
  EXPECT_FALSE(agent.running);
  EXPECT_EQ(agent.starts, 0);
  EXPECT_EQ(agent.status("GET", "/agent/v1/facts"), 200);
  EXPECT_EQ(agent.answer.value("keptStoppedBy", ""), "operation o1");
  EXPECT_EQ(state_of(agent.run("start_service")), "done") << agent.answer;
  EXPECT_TRUE(agent.running);
  EXPECT_EQ(agent.offline_->kept_stopped_by(), "");
  EXPECT_EQ(agent.status("GET", "/agent/v1/facts"), 200);
  EXPECT_EQ(agent.answer.value("keptStoppedBy", ""), "");
}

TEST(StopServer, IsDoneAtOnceWhereItIsDown) {
  RestoreCase agent;
  agent.running = false;
  EXPECT_EQ(state_of(agent.run("stop_server")), "done") << agent.answer;
  EXPECT_THAT(agent.offline_->kept_stopped_by(), HasSubstr("operation"));
}

TEST(StopServer, HoldsWhereTheAgentSeesTheServerOnlyOnItsWayDown) {
  RestoreCase agent;
  agent.seen = false;  // both have just been started
  agent.seen_while_stopping = "i1";
  EXPECT_EQ(state_of(agent.run("stop_server")), "done") << agent.answer;
  agent.offline_->see_running("i1");
  EXPECT_EQ(agent.offline_->kept_stopped_by(), "operation o1") << "a late answer";
  agent.running = true;
  agent.offline_->see_running("i2");
  EXPECT_EQ(agent.offline_->kept_stopped_by(), "") << "started by someone else";
}

TEST(StopServer, OfAServerThatDoesNotStopLetsItBeStartedAgain) {
  RestoreCase agent;
  agent.stubborn = true;
  const auto status = agent.run("stop_server", {{"serviceDeadlineMs", 30'000}});
  EXPECT_EQ(code_of(status), "no_effect") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("still answers"));
  EXPECT_EQ(agent.offline_->kept_stopped_by(), "");
}

TEST(StopServer, EndsAStartThatIsStillUnderWay) {
  RestoreCase agent;
  agent.running = false;
  agent.stubborn = true;  // it does not come up
  const auto start = agent.begin("start_service", json::object());
  agent.world_.run_for(milliseconds(2'000));
  EXPECT_EQ(state_of(agent.run("stop_server")), "done") << agent.answer;
  EXPECT_EQ(code_of(agent.ended(start)), "interrupted") << agent.answer;
  const int starts = agent.starts;
  agent.stubborn = false;
  agent.world_.run_for(milliseconds(600'000));
  EXPECT_EQ(agent.starts, starts);
}

TEST(StopServer, OfAnAgentThatDiesIsSettledByTheNext) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    RestoreCase agent;
    auto& disk = agent.host_.disk();
    disk.reset_count();
    bool reached = false;
    disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number == nth && !reached) {
        reached = true;
        agent.die();
      }
      return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
    });
    // Longer than ended() waits: nothing may depend on it.
    const auto id = agent.begin("stop_server", {{"serviceDeadlineMs", 3'600'000}});
    agent.world_.run_for(milliseconds(2'000));
    disk.set_fault_hook({});
    if (!reached) {
      EXPECT_EQ(state_of(agent.ended(id)), "done") << agent.answer;
      EXPECT_GT(nth, 5U);
      return;
    }
    agent.open();
    const auto status = agent.ended(id);
    // What it says and what is are the same: stopped for good, or running and not kept stopped.
    if (state_of(status) == "done") {
      EXPECT_FALSE(agent.running);
      EXPECT_NE(agent.offline_->kept_stopped_by(), "");
    } else {
      EXPECT_EQ(agent.offline_->kept_stopped_by(), "") << status;
    }
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

TEST(Restore, PutsTheGenerationInPlaceAndTheServerStaysStopped) {
  RestoreCase agent;
  agent.run("stop_server");
  const auto status = agent.run("restore", agent.restore_parameters());
  ASSERT_EQ(state_of(status), "done") << status;
  const auto& result = status.at("result");
  EXPECT_GT(result.value("bytes", 0), 16'000);
  EXPECT_GT(result.value("endPosition", 0), 10'000);
  EXPECT_EQ(result.value("oldFiles", ""), "/db/old-before-" + agent.generation);
  EXPECT_TRUE(agent.shows_generation());
  EXPECT_FALSE(agent.running);
  EXPECT_EQ(agent.starts, 0);
  EXPECT_EQ(state_of(agent.run("start_service")), "done") << agent.answer;
}

TEST(Restore, IsRevertedByteForByteAndThenThereIsNothingToRevert) {
  RestoreCase agent;
  agent.run("stop_server");
  ASSERT_EQ(state_of(agent.run("restore", agent.restore_parameters())), "done") << agent.answer;
  const json parameters{{"generation", agent.generation}};
  EXPECT_EQ(state_of(agent.run("restore_revert", parameters)), "done") << agent.answer;
  EXPECT_EQ(agent.tree("/db"), agent.before);
  EXPECT_EQ(state_of(agent.run("restore_revert", parameters)), "done") << agent.answer;
  EXPECT_EQ(agent.tree("/db"), agent.before);
}

TEST(Restore, LeavesWhatItKeptUntilThatIsDiscardedBesideTheRunningServer) {
  RestoreCase agent;
  agent.run("stop_server");
  ASSERT_EQ(state_of(agent.run("restore", agent.restore_parameters())), "done") << agent.answer;
  agent.run("start_service");
  const json parameters{{"generation", agent.generation}};
  const auto status = agent.run("restore_discard_old", parameters);
  ASSERT_EQ(state_of(status), "done") << status;
  EXPECT_GT(status.at("result").value("bytes", 0), 16'000);
  EXPECT_FALSE(value(agent.host_.disk().exists("/db/old-before-" + agent.generation)));
  EXPECT_EQ(agent.run("restore_discard_old", parameters).at("result").value("bytes", -1), 0);
  EXPECT_TRUE(agent.shows_generation());
}

TEST(Restore, IsRefusedBesideARunningServerAndForWhatIsNotThere) {
  RestoreCase agent;
  const auto running = agent.run("restore", agent.restore_parameters());
  EXPECT_EQ(code_of(running), "refused") << running;
  EXPECT_THAT(running.value("error", ""), HasSubstr("stop_server"));
  EXPECT_EQ(code_of(agent.run("restore_revert", {{"generation", agent.generation}})), "refused");
  EXPECT_EQ(code_of(agent.run("restore_revert", {{"generation", "../../etc"}})),
            "invalid_argument");
  agent.run("stop_server");
  auto unknown = agent.restore_parameters();
  unknown["generation"] = "20200101t000000z-00000000";
  EXPECT_EQ(code_of(agent.run("restore", unknown)), "not_found") << agent.answer;
  unknown = agent.restore_parameters();
  unknown["repository"] = "other";
  EXPECT_EQ(code_of(agent.run("restore", unknown)), "not_found") << agent.answer;
  EXPECT_EQ(agent.tree("/db"), agent.before);
}

TEST(Restore, OntoAnEmptyOrMissingDirectoryMakesANewNode) {
  for (const bool missing : {false, true}) {
    RestoreCase agent;
    agent.running = false;
    auto& disk = agent.host_.disk();
    for (const auto& [path, content] : agent.before) {
      ok(disk.remove(Path("/db") / path));
    }
    if (missing) {
      ok(disk.rename("/db", "/elsewhere"));
    }
    const auto status = agent.run("restore", agent.restore_parameters());
    ASSERT_EQ(state_of(status), "done") << status;
    EXPECT_TRUE(agent.shows_generation());
  }
}

TEST(Restore, LeavesADirectoryAloneThatIsNoDatabases) {
  RestoreCase agent;
  agent.running = false;
  auto& disk = agent.host_.disk();
  ok(disk.rename("/db", "/elsewhere"));
  ok(disk.make_directories("/db"));
  ok(write_file_durably(disk, "/db/passwd", as_bytes("root")));
  const auto status = agent.run("restore", agent.restore_parameters());
  EXPECT_EQ(code_of(status), "conflict") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("holds other files and no database"));
}

TEST(Restore, OfAnotherNodeOfThisMachineHasToBeWanted) {
  RestoreCase agent;
  agent.run("stop_server");
  backup::DirectoryStore store(agent.host_.disk(), "/repository", agent.world_.random());
  const auto repository = value(backup::Repository::open(store, backup::Repository::Create::kNo));
  auto manifest = value(repository.load(agent.generation));
  manifest.id = "20240105t000000z-00000001";
  manifest.source.directory = "/db-of-n2";
  ok(store.put("generations/" + manifest.id, as_bytes(backup::encode_manifest(manifest))));
  auto parameters = agent.restore_parameters();
  parameters["generation"] = manifest.id;
  const auto status = agent.run("restore", parameters);
  EXPECT_EQ(code_of(status), "conflict") << status;
  EXPECT_EQ(agent.tree("/db"), agent.before);
  parameters["otherNode"] = true;
  EXPECT_EQ(state_of(agent.run("restore", parameters)), "done") << agent.answer;
}

TEST(Restore, ThatIsCancelledLeavesTheOldDatabaseAndIsResumedFromWhatItCopied) {
  RestoreCase agent(400);
  agent.run("stop_server");
  auto slow = agent.restore_parameters();
  slow["bytesPerSecond"] = 20'000;
  const auto id = agent.begin("restore", slow);
  agent.world_.run_for(milliseconds(3'000));
  EXPECT_EQ(agent.status("GET", "/agent/v1/operations/" + id), 200);
  const auto progress = agent.answer.at("progress");
  EXPECT_EQ(progress.value("phase", ""), "copying") << agent.answer;
  EXPECT_EQ(progress.value("unit", ""), "bytes");
  EXPECT_GT(progress.value("total", 0), 100'000);
  EXPECT_EQ(agent.status("POST", "/agent/v1/operations/" + id + "/cancel"), 202);
  const auto status = agent.ended(id);
  EXPECT_EQ(code_of(status), "stopped") << status;
  auto now = agent.tree("/db");
  std::erase_if(now, [](const auto& entry) { return entry.first.contains("verger-restore"); });
  EXPECT_EQ(now, agent.before);
  const auto unfinished = value(backup::find_unfinished_restore(agent.host_.disk(), "/db"));
  ASSERT_TRUE(unfinished);
  EXPECT_TRUE(unfinished->database_is_whole);
  EXPECT_EQ(state_of(agent.run("restore", agent.restore_parameters())), "done") << agent.answer;
  EXPECT_TRUE(agent.shows_generation());
}

/// A restore, or its revert, whose agent or machine dies at an operation on its disk. False: it
/// was not reached.
bool dies_at(std::uint64_t nth, bool power, bool revert) {
  RestoreCase agent(20);
  agent.running = false;
  const json generation{{"generation", agent.generation}};
  if (revert) {
    EXPECT_EQ(state_of(agent.run("restore", agent.restore_parameters())), "done") << agent.answer;
  }
  auto& disk = agent.host_.disk();
  disk.reset_count();
  bool reached = false;
  disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number == nth && !reached) {
      reached = true;
      agent.die(power, power ? std::optional(nth) : std::nullopt);
    }
    return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
  });
  const auto id = revert ? agent.begin("restore_revert", generation)
                         : agent.begin("restore", agent.restore_parameters());
  agent.world_.run_for(milliseconds(5'000));
  disk.set_fault_hook({});
  if (reached) {
    agent.open();
  }
  auto status = agent.ended(id);
  if (state_of(status) != "done") {
    // It had not acted yet; a controller requests it again.
    EXPECT_TRUE(code_of(status) == "not_happened" || status.value("code", "") == "not_found")
        << status;
    status = revert ? agent.run("restore_revert", generation)
                    : agent.run("restore", agent.restore_parameters());
  }
  EXPECT_EQ(state_of(status), "done") << status;
  EXPECT_EQ(agent.starts, 0);
  if (revert) {
    EXPECT_EQ(agent.tree("/db"), agent.before);
    return reached;
  }
  EXPECT_EQ(status.value("result", json::object()).value("oldFiles", ""),
            "/db/old-before-" + agent.generation)
      << status;
  EXPECT_TRUE(agent.shows_generation());
  EXPECT_TRUE(agent.tree("/db/verger-restore").empty());
  EXPECT_EQ(state_of(agent.run("restore_revert", generation)), "done") << agent.answer;
  EXPECT_EQ(agent.tree("/db"), agent.before) << "and the files of before were kept as a whole";
  return reached;
}

TEST(Restore, OfAnAgentThatDiesAnywhereIsFinishedByTheNext) {
  for (const bool power : {false, true}) {
    std::uint64_t nth = 0;
    for (; dies_at(nth, power, /*revert=*/false); ++nth) {
      ASSERT_FALSE(::testing::Test::HasFailure()) << nth;
      ASSERT_LT(nth, 2'000U);
    }
    EXPECT_GT(nth, 40U);
  }
}

TEST(Restore, WhoseRevertIsInterruptedAnywhereIsRevertedByTheNextAgent) {
  for (const bool power : {false, true}) {
    std::uint64_t nth = 0;
    for (; dies_at(nth, power, /*revert=*/true); ++nth) {
      ASSERT_FALSE(::testing::Test::HasFailure()) << nth;
      ASSERT_LT(nth, 2'000U);
    }
    EXPECT_GT(nth, 20U);
  }
}

TEST(Restore, OfADeadNodeDoesNotWaitForTheScavengeThatWasRunningThere) {
  RestoreCase agent;
  agent.host_.crash(/*power=*/false);
  agent.host_.boot();
  {
    const auto journal =
        value(OperationJournal::open(agent.host_.disk(), "/agent/journal.db", agent.host_.clock()));
    auto scavenge = value(journal->accept({.id = "s1",
                                           .run = "r",
                                           .step = "s",
                                           .controller_epoch = 1,
                                           .kind = "scavenge",
                                           .parameters_json = "{}"}))
                        .record;
    scavenge.status.state = api::OperationState::kActing;
    ok(journal->update(scavenge));
  }
  agent.running = false;  // it never comes back, and what became of the scavenge is not known
  agent.open();
  agent.world_.run_for(milliseconds(120'000));
  EXPECT_EQ(agent.status("GET", "/agent/v1/operations/s1"), 200);
  EXPECT_EQ(agent.answer.value("finishedAt", ""), "") << agent.answer;
  EXPECT_EQ(state_of(agent.run("stop_server")), "done") << agent.answer;
  EXPECT_EQ(state_of(agent.run("restore", agent.restore_parameters())), "done") << agent.answer;
}

TEST(Restore, InTheMiddleLetsNothingStartTheServer) {
  RestoreCase agent;
  agent.run("stop_server");
  auto& disk = agent.host_.disk();
  disk.set_fault_hook([](const DiskOperation& operation) -> std::optional<Error> {
    return operation.kind == "rename" && operation.path.extension() != ".part" &&
                   operation.path.native().contains("verger-restore/new")
               ? std::optional(Error{Errc::kIo, "the disk is gone"})
               : std::nullopt;
  });
  // Fails when the new files come into place: the old ones have moved away.
  EXPECT_EQ(code_of(agent.run("restore", agent.restore_parameters())), "io") << agent.answer;
  disk.set_fault_hook({});
  const auto status = agent.run("start_service");
  EXPECT_EQ(code_of(status), "refused") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("finish it before the server is started"));
  EXPECT_EQ(agent.starts, 0);
  EXPECT_EQ(state_of(agent.run("restore_revert", {{"generation", agent.generation}})), "done");
  EXPECT_EQ(agent.tree("/db"), agent.before);
  EXPECT_EQ(state_of(agent.run("start_service")), "done") << agent.answer;
}

}  // namespace
}  // namespace verger::agent
