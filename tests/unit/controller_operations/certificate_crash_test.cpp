// The controller dies at each place of a change of certificates: the next one finishes it, or
// undoes all of it.

#include "tests/unit/controller_operations/certificate_rollout.h"
#include "tests/unit/controller_operations/crashes.h"

namespace verger::controller {
namespace {

using test::CertificateRollout;
using test::CrashAfter;
using test::FakeAuthority;

class CertificateCrash : public CertificateRollout {
 protected:
  static planner::Policy quick() {
    planner::CertificatesPolicy wanted;
    wanted.watch_ms = 2'000;
    return policy_of(wanted);
  }
  /// As new as at the beginning of a test, but for what time has passed.
  static void expect_all_or_nothing(CertificateCrash& life, const std::string& run) {
    const auto state = life.h_.state(run);
    if (state.status == RunStatus::kDone) {
      life.expect_changed(run);
      return;
    }
    life.expect_undone(run);
  }
};

/// Dies after the nth of what is counted, then lives on. False: it never came to that.
class OneCrash : public CertificateCrash {
 public:
  void TestBody() override {}
  bool dies_after(CrashAfter after, std::int64_t nth, bool fails) {
    begin();
    offer(FakeAuthority::make("new CA", h_.time.now()));
    if (fails) {
      certificates().node("n1").reload_fails_in = api::CertificatePhase::kLeaf;
    }
    const auto [run, crashed] =
        test::live_with_crash(h_, after, nth, [&] { return start(quick()); });
    EXPECT_TRUE(h_.run_to_end(run)) << snapshot_of(h_.state(run)).state;
    EXPECT_EQ(h_.state(run).status, fails ? RunStatus::kFailed : RunStatus::kDone)
        << h_.state(run).reason;
    expect_all_or_nothing(*this, run);
    return crashed;
  }
};

int die_at_each(CrashAfter after, bool fails) {
  return test::crash_at_each(test::places_apart(after), [&](std::int64_t nth) {
    OneCrash life;
    return life.dies_after(after, nth, fails);
  });
}

TEST(CertificateCrashes, AfterEachJournaledEventTheRunFinishes) {
  EXPECT_GT(die_at_each(CrashAfter::kEvents, /*fails=*/false), 30);
}

TEST(CertificateCrashes, AfterEachOrderToAnAgentTheRunFinishes) {
  EXPECT_GT(die_at_each(CrashAfter::kOrders, /*fails=*/false), 10);
}

TEST(CertificateCrashes, AfterEachJournaledEventOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(CrashAfter::kEvents, /*fails=*/true), 30);
}

TEST(CertificateCrashes, AfterEachOrderOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(CrashAfter::kOrders, /*fails=*/true), 10);
}

/// Between two switches, for longer than the window.
TEST_F(CertificateCrash, AControllerThatIsAwayForLongUndoesAll) {
  begin();
  offer(certificates().authority);
  const auto run = start(quick());
  ASSERT_TRUE(h_.run_until([&] { return certificates().node("n2").switches == 1; }));
  h_.crash();
  h_.time.jump(std::chrono::hours(1));
  h_.boot();
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, ::testing::HasSubstr("window"));
}

}  // namespace
}  // namespace verger::controller
