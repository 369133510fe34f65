// The controller dies at each place of a change of certificates: the next one finishes it, or
// undoes all of it.
#include <fmt/format.h>

#include "tests/unit/controller_operations/certificate_rollout.h"

namespace verger::controller {
namespace {

using test::CertificateRollout;
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

/// Dies after the nth of something, then lives on. False: it never came to that.
class OneCrash : public CertificateCrash {
 public:
  void TestBody() override {}
  bool dies_after(std::int64_t nth, bool deeds, bool fails) {
    begin();
    offer(FakeAuthority::make("new CA", h_.time.now()));
    if (fails) {
      certificates().node("n1").reload_fails_in = api::CertificatePhase::kLeaf;
    }
    std::int64_t count = 0;
    if (deeds) {
      h_.cluster.acted = [&count](const test::FakeNode&, const http::Request& request) {
        count += request.target.starts_with("/agent/v1/operations") ? 1 : 0;
      };
    }
    const auto run = start(quick());
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
    EXPECT_EQ(h_.state(run).status, fails ? RunStatus::kFailed : RunStatus::kDone)
        << h_.state(run).reason;
    expect_all_or_nothing(*this, run);
    return crashed;
  }
};

/// After each order, or each second event: between two of those, something is done at most once.
int die_at_each(bool deeds, bool fails) {
  for (std::int64_t nth = 1;; nth += deeds ? 1 : 2) {
    SCOPED_TRACE(fmt::format("after number {}", nth));
    OneCrash life;
    const bool died = life.dies_after(nth, deeds, fails);
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!died) {
      return static_cast<int>(nth) - 1;
    }
  }
}

TEST(CertificateCrashes, AfterEachJournaledEventTheRunFinishes) {
  EXPECT_GT(die_at_each(/*deeds=*/false, /*fails=*/false), 30);
}

TEST(CertificateCrashes, AfterEachOrderToAnAgentTheRunFinishes) {
  EXPECT_GT(die_at_each(/*deeds=*/true, /*fails=*/false), 10);
}

TEST(CertificateCrashes, AfterEachJournaledEventOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(/*deeds=*/false, /*fails=*/true), 30);
}

TEST(CertificateCrashes, AfterEachOrderOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(/*deeds=*/true, /*fails=*/true), 10);
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
