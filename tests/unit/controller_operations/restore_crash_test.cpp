// The controller dies at each place of a restore: the next one finishes it or undoes all of it, and
// no node on former files runs beside one on restored files.

#include "tests/unit/controller_operations/crashes.h"
#include "tests/unit/controller_operations/restore_run.h"

namespace verger::controller {
namespace {

using test::CrashAfter;

enum class Ends : std::uint8_t { kRestored, kUndone };

/// Dies after the nth of what is counted, then lives on. False: it never came to that.
class OneRestoreCrash : public test::RestoreRun {
 public:
  void TestBody() override {}
  bool dies_after(CrashAfter after, std::int64_t nth, Ends ends) {
    begin();
    if (ends == Ends::kUndone) {
      files("n2").failing_restores = 1'000;
    }
    const auto [run, crashed] =
        test::live_with_crash(h_, after, nth, [&] { return start(of_cluster()); });
    if (ends == Ends::kRestored) {
      expect_restored(run);
    } else {
      expect_undone(run);
    }
    return crashed;
  }
};

int die_at_each(CrashAfter after, Ends ends) {
  return test::crash_at_each(test::places_apart(after), [&](std::int64_t nth) {
    OneRestoreCrash life;
    return life.dies_after(after, nth, ends);
  });
}

TEST(RestoreCrashes, AfterEachJournaledEventTheRunFinishes) {
  EXPECT_GT(die_at_each(CrashAfter::kEvents, Ends::kRestored), 30);
}

TEST(RestoreCrashes, AfterEachOrderToAnAgentTheRunFinishes) {
  EXPECT_GT(die_at_each(CrashAfter::kOrders, Ends::kRestored), 8);
}

TEST(RestoreCrashes, AfterEachJournaledEventOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(CrashAfter::kEvents, Ends::kUndone), 30);
}

TEST(RestoreCrashes, AfterEachOrderOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(CrashAfter::kOrders, Ends::kUndone), 8);
}

}  // namespace
}  // namespace verger::controller
