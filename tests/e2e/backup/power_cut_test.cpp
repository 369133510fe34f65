#include <filesystem>
#include <gtest/gtest.h>

#include "tests/e2e/backup/kill_case.h"

/// All machines lose their power at once (SIGKILL to servers, agents and vergerd) at a step of a
/// backup, or of the restore of the whole cluster, and boot: the run ends as it would have.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class PowerCut : public KillCase {
 protected:
  /// Follows the run to its end, with a cut where a process comes to the failpoint.
  json ended(const std::string& run) {
    EXPECT_TRUE(eventually(seconds(60), [&] { return std::filesystem::exists(reached()); }))
        << "never reached: " << GetParam().failpoint << cluster_.logs();
    cluster_.cut_power();
    cluster_.boot();
    auto seen = cluster_.wait_for_run(run, seconds(180));
    EXPECT_TRUE(seen.is_object()) << "the run did not end" << cluster_.logs();
    EXPECT_EQ(seen.is_object() ? seen.at("state") : json(), "done")
        << seen.dump(1) << cluster_.logs();
    return seen;
  }
  static constexpr seconds kPatience{90};
};

class BackupPower : public PowerCut {};

TEST_P(BackupPower, IsLostAndTheRunEndsInAWholeBackup) {
  start();
  SteadyWriter writer(cluster_, {}, kPatience);
  ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
  arm();
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  ended(cluster_.start_run("backup", {"--repository", "main"}));
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);
  EXPECT_EQ(expect_events_everywhere(writer.written()), writer.written());
  for (const auto& each : backups()) {
    EXPECT_TRUE(each["damage"].is_null()) << each.dump(1);
  }
  EXPECT_EQ(backups()[0]["last_verify"]["passed"], true) << backups().dump(1);
}

INSTANTIATE_TEST_SUITE_P(All, BackupPower,
                         ::testing::Values(Kill{Kill::Who::kAgents, "backup.after-chunk:2"},
                                           Kill{Kill::Who::kController,
                                                "controller.backup_verify.after-act"}));

class RestorePower : public PowerCut {};

TEST_P(RestorePower, IsLostAndAllNodesHaveOneHistory) {
  ASSERT_NO_FATAL_FAILURE(start_whole_restore());
  expect_whole_restore(ended(run_));
}

INSTANTIATE_TEST_SUITE_P(
    All, RestorePower,
    ::testing::Values(Kill{Kill::Who::kController, "controller.server_stop.after-act:2"},
                      Kill{Kill::Who::kAgents, "restore.after-old"},
                      Kill{Kill::Who::kController, "controller.start_server.after-act:2"}));

}  // namespace
}  // namespace verger::test
