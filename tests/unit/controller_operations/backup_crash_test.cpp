// The controller dies at each place of a backup that stopped a scavenge: the next one finishes it,
// and the scavenge runs again.
#include <fmt/format.h>

#include "tests/unit/controller_operations/backup_runs.h"

namespace verger::controller {
namespace {

using test::BackupRuns;

/// Dies after the nth of something, then lives on. False: it never came to that.
class OneBackupCrash : public BackupRuns {
 public:
  void TestBody() override {}

  bool dies_after(std::int64_t nth, bool deeds, bool fails) {
    begin();
    scavenge_by_hand("n2");
    backups().failures = fails ? 99 : 0;
    std::int64_t count = 0;
    if (deeds) {
      h_.cluster.acted = [&count](const test::FakeNode&, const http::Request&) { ++count; };
    }
    const auto run = start(interrupting());
    const auto first = h_.journal->last_sequence()->value();
    bool crashed = false;
    h_.news = true;
    h_.run_until(
        [&] {
          const bool news = std::exchange(h_.news, false);
          if (!deeds && news) {
            count = h_.journal->last_sequence()->value() - first;
          }
          crashed = crashed || count >= nth;
          return crashed || (news && has_ended(h_.state(run).status));
        },
        std::chrono::hours(1));
    if (crashed) {
      h_.crash();
      h_.boot();
    }
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

int die_at_each_place(bool deeds, bool fails) {
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(fmt::format("after number {}", nth));
    OneBackupCrash life;
    const bool died = life.dies_after(nth, deeds, fails);
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!died) {
      return static_cast<int>(nth) - 1;
    }
  }
}

TEST(BackupCrashes, AfterEachJournaledEventTheRunFinishesAndTheScavengeRunsAgain) {
  EXPECT_GT(die_at_each_place(/*deeds=*/false, /*fails=*/false), 15);
}

TEST(BackupCrashes, AfterEachOrderTheRunFinishesAndTheScavengeRunsAgain) {
  EXPECT_GT(die_at_each_place(/*deeds=*/true, /*fails=*/false), 8);
}

TEST(BackupCrashes, AfterEachJournaledEventOfARunThatFailsTheScavengeRunsAgain) {
  EXPECT_GT(die_at_each_place(/*deeds=*/false, /*fails=*/true), 12);
}

}  // namespace
}  // namespace verger::controller
