#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_operations/redaction_runs.h"

namespace verger::controller {
namespace {

using test::RedactionRun;

/// The controller dies once so many events of the run are journaled, then lives on.
class OneRedactionCrash : public RedactionRun {
 public:
  void TestBody() override {}

  /// False: it never came to that.
  bool dies_after(std::int64_t nth, bool online) {
    SetUp();
    for (auto& node : h_.cluster.nodes) {
      node.online_problem = online ? "" : "it offers no socket";
    }
    const auto id = h_.start_scavenge(wanted_policy());
    const auto first = h_.journal->last_sequence()->value();
    bool crashed = false;
    h_.news = true;
    h_.run_until(
        [&] {
          const bool news = std::exchange(h_.news, false);
          crashed = crashed || (news && h_.journal->last_sequence()->value() - first >= nth);
          return crashed || (news && has_ended(h_.state(id).status));
        },
        std::chrono::hours(1));
    if (crashed) {
      h_.crash();
      h_.boot();
    }
    EXPECT_TRUE(h_.run_to_end(id)) << snapshot_of(h_.state(id)).state;
    EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
    const std::string_view word = online ? "redact running " : "redact ";
    for (const auto* name : {"n1", "n2", "n3"}) {
      EXPECT_EQ(std::ranges::count(done_, fmt::format("{}{}", word, name)), 1)
          << name << ": once, by its id";
    }
    EXPECT_EQ(report(id)["outcome"], "redacted");
    return crashed;
  }
};

int die_at_each_event_of_a_redaction(bool online) {
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(fmt::format("after event {}", nth));
    OneRedactionCrash life;
    const bool died = life.dies_after(nth, online);
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!died) {
      return static_cast<int>(nth) - 1;
    }
  }
}

TEST(RedactionCrashes, AfterEachJournaledEventTheRunFinishesWithNodesThatRun) {
  EXPECT_GT(die_at_each_event_of_a_redaction(/*online=*/true), 20);
}

TEST(RedactionCrashes, AfterEachJournaledEventTheRunFinishesWithNodesThatAreStopped) {
  EXPECT_GT(die_at_each_event_of_a_redaction(/*online=*/false), 30);
}

}  // namespace
}  // namespace verger::controller
