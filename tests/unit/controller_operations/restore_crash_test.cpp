// The controller dies at each place of a restore: the next one finishes it or undoes all of it, and
// no node on former files runs beside one on restored files.
#include <fmt/format.h>
#include <utility>

#include "tests/unit/controller_operations/restore_run.h"

namespace verger::controller {
namespace {

enum class Ends : std::uint8_t { kRestored, kUndone };

/// Dies after the nth of something, then lives on. False: it never came to that.
class OneRestoreCrash : public test::RestoreRun {
 public:
  void TestBody() override {}
  bool dies_after(std::int64_t nth, bool deeds, Ends ends) {
    begin();
    if (ends == Ends::kUndone) {
      files("n2").failing_restores = 1'000;
    }
    std::int64_t count = 0;
    if (deeds) {
      h_.cluster.acted = [&count](const test::FakeNode&, const http::Request& request) {
        count += request.target.starts_with("/agent/v1/operations") ? 1 : 0;
      };
    }
    const auto run = start(of_cluster());
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
    if (ends == Ends::kRestored) {
      expect_restored(run);
    } else {
      expect_undone(run);
    }
    return crashed;
  }
};

/// After each order, or each second event: between two of those, something is done at most once.
int die_at_each(bool deeds, Ends ends) {
  for (std::int64_t nth = 1;; nth += deeds ? 1 : 2) {
    SCOPED_TRACE(fmt::format("after number {}", nth));
    OneRestoreCrash life;
    const bool died = life.dies_after(nth, deeds, ends);
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!died) {
      return static_cast<int>(nth) - 1;
    }
  }
}

TEST(RestoreCrashes, AfterEachJournaledEventTheRunFinishes) {
  EXPECT_GT(die_at_each(/*deeds=*/false, Ends::kRestored), 30);
}

TEST(RestoreCrashes, AfterEachOrderToAnAgentTheRunFinishes) {
  EXPECT_GT(die_at_each(/*deeds=*/true, Ends::kRestored), 8);
}

TEST(RestoreCrashes, AfterEachJournaledEventOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(/*deeds=*/false, Ends::kUndone), 30);
}

TEST(RestoreCrashes, AfterEachOrderOfARunThatMustUndoAllIsUndone) {
  EXPECT_GT(die_at_each(/*deeds=*/true, Ends::kUndone), 8);
}

}  // namespace
}  // namespace verger::controller
