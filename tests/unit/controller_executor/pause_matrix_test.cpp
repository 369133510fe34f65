#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/controller_harness.h"

// The table of docs/operations/pausing.md, row by row: what an intent does at once, and what is
// seen a minute later.
namespace verger::controller {
namespace {

using test::ControllerHarness;

enum class Situation : std::uint8_t {
  kScavenges,       ///< n2 does; the policy stops it on a pause
  kScavengesLeave,  ///< the policy leaves it
  kWaits,           ///< n3 waits for a gate
  kUnknown,         ///< n2 went down while it scavenged
  kMoves,           ///< the priority of n1 is lowered
  kPaused,
  kEnded,
};
enum class Intent : std::uint8_t { kPause, kDrain, kNow, kResume, kCancel, kSkip };

struct Row {
  Situation situation;
  Intent intent;
  const char* at_once;  ///< the run's state; "conflict": the intent is refused
  const char* later;
  const char* node;  ///< n2's scavenge: stopped, finished, away (not to be seen), or - (no matter)
};

const Row kMatrix[] = {
    {Situation::kScavenges, Intent::kPause, "pausing", "paused", "stopped"},
    {Situation::kScavenges, Intent::kDrain, "pausing", "paused", "finished"},
    {Situation::kScavenges, Intent::kNow, "pausing", "paused", "stopped"},
    {Situation::kScavenges, Intent::kResume, "conflict", "done", "finished"},
    {Situation::kScavenges, Intent::kCancel, "cancelling", "cancelled", "stopped"},
    {Situation::kScavenges, Intent::kSkip, "running", "done", "stopped"},

    {Situation::kScavengesLeave, Intent::kPause, "pausing", "paused", "finished"},
    {Situation::kScavengesLeave, Intent::kDrain, "pausing", "paused", "finished"},
    {Situation::kScavengesLeave, Intent::kNow, "pausing", "paused", "stopped"},
    {Situation::kScavengesLeave, Intent::kResume, "conflict", "done", "finished"},
    {Situation::kScavengesLeave, Intent::kCancel, "cancelling", "cancelled", "stopped"},
    {Situation::kScavengesLeave, Intent::kSkip, "running", "done", "stopped"},

    {Situation::kWaits, Intent::kPause, "pausing", "paused", "finished"},
    {Situation::kWaits, Intent::kDrain, "pausing", "paused", "finished"},
    {Situation::kWaits, Intent::kNow, "pausing", "paused", "finished"},
    {Situation::kWaits, Intent::kResume, "conflict", "waiting", "finished"},
    {Situation::kWaits, Intent::kCancel, "cancelling", "cancelled", "finished"},
    {Situation::kWaits, Intent::kSkip, "running", "done", "finished"},

    {Situation::kUnknown, Intent::kPause, "pausing", "pausing", "away"},
    {Situation::kUnknown, Intent::kDrain, "pausing", "pausing", "away"},
    {Situation::kUnknown, Intent::kNow, "pausing", "pausing", "away"},
    {Situation::kUnknown, Intent::kResume, "conflict", "waiting", "away"},
    {Situation::kUnknown, Intent::kCancel, "cancelling", "cancelling", "away"},
    {Situation::kUnknown, Intent::kSkip, "waiting", "waiting", "away"},

    {Situation::kMoves, Intent::kPause, "pausing", "paused", "finished"},
    {Situation::kMoves, Intent::kDrain, "pausing", "paused", "finished"},
    {Situation::kMoves, Intent::kNow, "pausing", "paused", "finished"},
    {Situation::kMoves, Intent::kResume, "conflict", "done", "finished"},
    {Situation::kMoves, Intent::kCancel, "cancelling", "cancelled", "finished"},

    {Situation::kPaused, Intent::kPause, "paused", "paused", "stopped"},
    {Situation::kPaused, Intent::kDrain, "paused", "paused", "stopped"},
    {Situation::kPaused, Intent::kNow, "paused", "paused", "stopped"},
    {Situation::kPaused, Intent::kResume, "running", "done", "finished"},
    {Situation::kPaused, Intent::kCancel, "cancelling", "cancelled", "stopped"},
    {Situation::kPaused, Intent::kSkip, "paused", "paused", "stopped"},

    {Situation::kEnded, Intent::kPause, "conflict", "done", "finished"},
    {Situation::kEnded, Intent::kNow, "conflict", "done", "finished"},
    {Situation::kEnded, Intent::kResume, "conflict", "done", "finished"},
    {Situation::kEnded, Intent::kCancel, "conflict", "done", "finished"},
    {Situation::kEnded, Intent::kSkip, "conflict", "done", "finished"},
};

class PauseMatrix : public ::testing::TestWithParam<Row> {
 protected:
  void reach(Situation situation) {
    h_.cluster.scavenge_takes = std::chrono::seconds(8);
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.boot();
    h_.register_cluster();
    auto policy = ControllerHarness::quick_policy();
    if (situation == Situation::kScavengesLeave) {
      policy.pauses.on_pause = planner::PauseRule::kLeave;
    }
    run_ = h_.start_scavenge(policy);
    auto& n2 = h_.cluster.node("n2");
    ASSERT_TRUE(h_.run_until([&] { return n2.running.has_value(); }));
    pass(std::chrono::seconds(2));
    switch (situation) {
      case Situation::kScavenges:
      case Situation::kScavengesLeave:
        break;
      case Situation::kWaits:
        // A lag earlier would hold up what is computed on n1 between the two.
        ASSERT_TRUE(h_.run_until(
            [&] { return h_.state(run_).steps.at("record-n1").status == StepStatus::kDone; }));
        h_.cluster.node("n1").writer = std::int64_t{1} << 40U;
        n2.writer = std::int64_t{1} << 40U;
        ASSERT_TRUE(h_.run_until(
            [&] { return h_.state(run_).steps.at("scavenge-n3").status == StepStatus::kWaiting; }));
        break;
      case Situation::kUnknown:
        n2.up = false;
        n2.agent_up = false;
        ASSERT_TRUE(h_.run_until(
            [&] { return h_.state(run_).steps.at("scavenge-n2").status == StepStatus::kUnknown; }));
        break;
      case Situation::kMoves:
        h_.cluster.election_takes = std::chrono::seconds(2);
        ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
        break;
      case Situation::kPaused:
        ASSERT_TRUE(h_.executor->pause(run_, "me", "").has_value());
        pass(std::chrono::seconds(5));
        ASSERT_EQ(h_.state(run_).status, RunStatus::kPaused);
        break;
      case Situation::kEnded:
        ASSERT_TRUE(h_.run_to_end(run_));
        break;
    }
  }
  Result<void> carry_out(Intent intent) {
    switch (intent) {
      case Intent::kPause:
        return h_.executor->pause(run_, "me", "");
      case Intent::kDrain:
        return h_.executor->pause(run_, "me", "", PauseMode::kDrain);
      case Intent::kNow:
        return h_.executor->pause(run_, "me", "", PauseMode::kNow);
      case Intent::kResume:
        return h_.wait_for(h_.executor->resume(run_, "me"));
      case Intent::kCancel:
        return h_.executor->cancel(run_, "me", "");
      case Intent::kSkip:
        return skip(GetParam().situation == Situation::kWaits ? "n3" : "n2");
    }
    return {};
  }
  Result<void> skip(const std::string& node) {
    const auto skipped = h_.wait_for(h_.executor->skip_node(run_, node, "me", ""));
    return skipped ? Result<void>() : skipped.error();
  }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  ControllerHarness h_;
  std::string run_;
};

TEST_P(PauseMatrix, DoesAtOnceAndLaterWhatTheTableSays) {
  const auto& row = GetParam();
  ASSERT_NO_FATAL_FAILURE(reach(row.situation));
  const auto done = carry_out(row.intent);
  if (std::string_view(row.at_once) == "conflict") {
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, Errc::kConflict) << done.error().message;
  } else {
    ASSERT_TRUE(done.has_value()) << done.error().message;
    EXPECT_EQ(to_string(h_.state(run_).status), row.at_once);
  }
  pass(std::chrono::minutes(1));
  const auto state = h_.state(run_);
  EXPECT_EQ(to_string(state.status), row.later) << state.reason;
  const auto& n2 = h_.cluster.node("n2");
  const std::string_view wanted = row.node;
  if (wanted == "stopped") {
    EXPECT_FALSE(n2.running.has_value());
    EXPECT_FALSE(n2.last_finished.has_value());
  } else if (wanted == "finished") {
    EXPECT_EQ(n2.last_finished, 0);
  }
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  if (state.status != RunStatus::kDone) {
    EXPECT_LE(h_.cluster.total_resigns(), 1);
  }
}

std::string name_of(const ::testing::TestParamInfo<Row>& info) {
  static constexpr const char* kSituations[] = {"Scavenges", "ScavengesLeave", "Waits", "Unknown",
                                                "Moves",     "Paused",         "Ended"};
  static constexpr const char* kIntents[] = {"Pause", "Drain", "Now", "Resume", "Cancel", "Skip"};
  return fmt::format("{}{}", kSituations[static_cast<std::size_t>(info.param.situation)],
                     kIntents[static_cast<std::size_t>(info.param.intent)]);
}

INSTANTIATE_TEST_SUITE_P(EachStateAndIntent, PauseMatrix, ::testing::ValuesIn(kMatrix), name_of);

}  // namespace
}  // namespace verger::controller
