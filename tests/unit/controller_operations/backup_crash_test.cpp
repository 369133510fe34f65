// The controller dies at each place of a backup that stopped a scavenge: the next one finishes it,
// and the scavenge runs again.

#include "tests/unit/controller_operations/backup_runs.h"
#include "tests/unit/controller_operations/crashes.h"

namespace verger::controller {
namespace {

using test::BackupRuns;
using test::CrashAfter;

/// Dies after the nth of what is counted, then lives on. False: it never came to that.
class OneBackupCrash : public BackupRuns {
 public:
  void TestBody() override {}

  bool dies_after(CrashAfter after, std::int64_t nth, bool fails) {
    begin();
    scavenge_by_hand("n2");
    backups().failures = fails ? 99 : 0;
    const auto [run, crashed] =
        test::live_with_crash(h_, after, nth, [&] { return start(interrupting()); });
    EXPECT_TRUE(h_.run_to_end(run)) << snapshot_of(h_.state(run)).state;
    expect_right_end(run, fails);
    return crashed;
  }

 private:
  static planner::BackupPolicy interrupting() {
    auto out = wanted();
    out.nodes = "n2";
    out.interrupt_scavenge = true;
    out.keep_last = 1;
    return out;
  }
  void expect_right_end(const std::string& run, bool fails) {
    EXPECT_EQ(h_.state(run).status, fails ? RunStatus::kFailed : RunStatus::kDone)
        << h_.state(run).reason;
    EXPECT_TRUE(node("n2").running.has_value()) << "the scavenge does not run again";
    EXPECT_EQ(h_.cluster.points.size(), 1U) << "points were made";
    EXPECT_EQ(h_.cluster.copies_beside_scavenges, 0);
    if (!fails) {
      EXPECT_EQ(backups().generations.size(), 1U);
      EXPECT_THAT(backups().done,
                  ::testing::ElementsAre("backup n2 g1 full", "verify g1", "retain n2"));
    }
  }
};

int die_at_each_place(CrashAfter after, bool fails) {
  return test::crash_at_each(1, [&](std::int64_t nth) {
    OneBackupCrash life;
    return life.dies_after(after, nth, fails);
  });
}

TEST(BackupCrashes, AfterEachJournaledEventTheRunFinishesAndTheScavengeRunsAgain) {
  EXPECT_GT(die_at_each_place(CrashAfter::kEvents, /*fails=*/false), 15);
}

TEST(BackupCrashes, AfterEachOrderTheRunFinishesAndTheScavengeRunsAgain) {
  EXPECT_GT(die_at_each_place(CrashAfter::kDeeds, /*fails=*/false), 8);
}

TEST(BackupCrashes, AfterEachJournaledEventOfARunThatFailsTheScavengeRunsAgain) {
  EXPECT_GT(die_at_each_place(CrashAfter::kEvents, /*fails=*/true), 12);
}

}  // namespace
}  // namespace verger::controller
