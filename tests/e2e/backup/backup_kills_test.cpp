#include <gtest/gtest.h>

#include "tests/e2e/backup/kill_case.h"

/// A process that is killed (SIGKILL) in the middle of a backup: the run ends, and a listed backup
/// is a whole one.
namespace verger::test {
namespace {

using std::chrono::seconds;

class KilledBackup : public KillCase {};

TEST_P(KilledBackup, EndsInAWholeBackup) {
  start();
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
  arm();
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  const auto run =
      cluster_.wait_for_run(cluster_.start_run("backup", {"--repository", "main"}), seconds(120));
  ASSERT_TRUE(run.is_object()) << "the run did not end" << cluster_.logs();
  expect_reached();
  EXPECT_EQ(run.at("state"), "done") << run.dump(1) << cluster_.logs();
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);
  const auto newest = backups();
  ASSERT_FALSE(newest.empty()) << cluster_.logs();
  back_up("verify");
  for (const auto& each : backups()) {
    EXPECT_TRUE(each["damage"].is_null()) << each.dump(1);
  }
  EXPECT_EQ(backups()[0]["last_verify"]["passed"], true) << backups().dump(1);
}

INSTANTIATE_TEST_SUITE_P(
    Controller, KilledBackup,
    ::testing::Values(Kill{Kill::Who::kController, "controller.backup_create.after-intent"},
                      Kill{Kill::Who::kController, "controller.backup_create.after-act"},
                      Kill{Kill::Who::kController, "controller.backup_create.before-outcome"},
                      Kill{Kill::Who::kController, "controller.backup_verify.after-act"}));
INSTANTIATE_TEST_SUITE_P(Agent, KilledBackup,
                         ::testing::Values(Kill{Kill::Who::kAgents, "agent.operation.accepted"},
                                           Kill{Kill::Who::kAgents, "backup.after-index"},
                                           Kill{Kill::Who::kAgents, "backup.after-checkpoints"},
                                           Kill{Kill::Who::kAgents, "backup.after-chunk:2"},
                                           Kill{Kill::Who::kAgents, "backup.before-manifest"},
                                           Kill{Kill::Who::kAgents, "backup.after-manifest"},
                                           Kill{Kill::Who::kAgents,
                                                "agent.outcome.after-journal"}));

class NodeDeath : public BackupCase {};

TEST_F(NodeDeath, OfTheSourceDuringTheCopyEndsInAWholeBackup) {
  start();
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
  // Slow enough that the copy is under way.
  const auto id = cluster_.start_run("backup", {"--repository", "main", "--nodes", "n2",
                                                "--bytes-per-second", "200000", "--source", "any"});
  ASSERT_TRUE(eventually(seconds(30), [&] {
    const auto run = cluster_.verger_json({"run", "show", id});
    return run.is_object() && run.dump().find("\"acting\"") != std::string::npos;
  })) << cluster_.logs();
  cluster_.kill_server(1);
  cluster_.start_node(1);
  const auto run = cluster_.wait_for_run(id, seconds(150));
  ASSERT_TRUE(run.is_object()) << "the run did not end" << cluster_.logs();
  EXPECT_EQ(run.at("state"), "done") << run.dump(1) << cluster_.logs();
  writer.stop();
  EXPECT_EQ(the_backup()["last_verify"]["passed"], true);
}

}  // namespace
}  // namespace verger::test
