#include <gtest/gtest.h>

#include "tests/e2e/backup/kill_case.h"

/// vergerd, or all agents, killed (SIGKILL) at a step of the restore of a whole cluster: the run
/// ends, all nodes have what was acknowledged before the backup, and one history.
namespace verger::test {
namespace {

using std::chrono::seconds;

class KilledRestore : public KillCase {};

TEST_P(KilledRestore, EndsWithOneHistoryOnAllNodes) {
  start();
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
  const auto acknowledged = writer.written();
  a_backup();
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  arm();
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  const auto run = cluster_.wait_for_run(start_restore({"--scope", "cluster"}), seconds(150));
  ASSERT_TRUE(run.is_object()) << "the run did not end" << cluster_.logs();
  expect_reached();
  EXPECT_EQ(run.at("state"), "done") << run.dump(1) << cluster_.logs();
  EXPECT_EQ(run.at("report").value("outcome", ""), "restored") << run.dump(1);
  expect_events_everywhere(acknowledged);
  expect_equal_digests();
  expect_writes();
}

INSTANTIATE_TEST_SUITE_P(
    Controller, KilledRestore,
    ::testing::Values(Kill{Kill::Who::kController, "controller.restore_prepare.after-outcome"},
                      Kill{Kill::Who::kController, "controller.server_stop.after-intent"},
                      Kill{Kill::Who::kController, "controller.server_stop.after-act:2"},
                      Kill{Kill::Who::kController, "controller.server_stop.before-outcome:3"},
                      Kill{Kill::Who::kController, "controller.backup_restore.after-intent"},
                      Kill{Kill::Who::kController, "controller.backup_restore.after-act"},
                      Kill{Kill::Who::kController, "controller.backup_restore.before-outcome:2"},
                      Kill{Kill::Who::kController, "controller.restore_commit.before-outcome"},
                      Kill{Kill::Who::kController, "controller.restore_commit.after-outcome"},
                      Kill{Kill::Who::kController, "controller.start_server.after-intent"},
                      Kill{Kill::Who::kController, "controller.start_server.after-act:2"},
                      Kill{Kill::Who::kController, "controller.start_server.before-outcome"},
                      Kill{Kill::Who::kController, "controller.restore_check.before-outcome"}));
INSTANTIATE_TEST_SUITE_P(Agent, KilledRestore,
                         ::testing::Values(Kill{Kill::Who::kAgents, "agent.operation.accepted"},
                                           Kill{Kill::Who::kAgents,
                                                "agent.stop-server.before-stop"},
                                           Kill{Kill::Who::kAgents, "agent.stop-server.stopped"},
                                           Kill{Kill::Who::kAgents, "agent.restore.before-copy"},
                                           Kill{Kill::Who::kAgents, "restore.after-file"},
                                           Kill{Kill::Who::kAgents, "restore.before-switch"},
                                           Kill{Kill::Who::kAgents, "restore.switch-noted"},
                                           Kill{Kill::Who::kAgents, "restore.after-old"},
                                           Kill{Kill::Who::kAgents, "restore.after-switch"},
                                           Kill{Kill::Who::kAgents, "restore.before-finish"},
                                           Kill{Kill::Who::kAgents, "agent.restore.in-place"},
                                           Kill{Kill::Who::kAgents, "agent.restore.finished"},
                                           Kill{Kill::Who::kAgents, "agent.outcome.after-journal"},
                                           Kill{Kill::Who::kAgents, "agent.operation.after-act"}));

}  // namespace
}  // namespace verger::test
