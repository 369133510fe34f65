#include <gtest/gtest.h>

#include "tests/e2e/backup/kill_case.h"

/// vergerd, or all agents, killed (SIGKILL) at a step of the restore of a whole cluster: the run
/// ends, all nodes have what was acknowledged before the backup, and one history.
namespace verger::test {
namespace {

using std::chrono::seconds;

class KilledRestore : public KillCase {};

TEST_P(KilledRestore, EndsWithOneHistoryOnAllNodes) {
  ASSERT_NO_FATAL_FAILURE(start_whole_restore());
  const auto run = cluster_.wait_for_run(run_, seconds(150));
  ASSERT_TRUE(run.is_object()) << "the run did not end" << cluster_.logs();
  expect_reached();
  EXPECT_EQ(run.at("state"), "done") << run.dump(1) << cluster_.logs();
  expect_whole_restore(run);
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
