#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;

/// What must be true at the end of a run, however often the controller died.
void expect_right_end(ControllerHarness& h, const std::string& run) {
  const auto state = h.state(run);
  ASSERT_EQ(state.status, RunStatus::kDone) << state.reason;
  ASSERT_EQ(h.cluster.points.size(), 1U) << "points were made";
  for (const auto& node : h.cluster.nodes) {
    ASSERT_EQ(node.last_finished, 0) << node.name;
    ASSERT_EQ(node.finished.at(0), 1) << node.name << " was scavenged twice";
    ASSERT_EQ(node.priority, 0) << node.name << " keeps a foreign priority";
  }
  ASSERT_LE(h.cluster.total_resigns(), 1);
  ASSERT_LE(state.planned_moves(), 1);
  ASSERT_TRUE(h.journal->verify().has_value());
}

/// A controller that has just started a scavenge; the run's id.
std::string boot_and_start(ControllerHarness& h) {
  h.boot();
  h.register_cluster();
  return h.start_scavenge(ControllerHarness::quick_policy());
}

/// Dies as soon as `now` says so, then lives on. False: it never did.
bool run_with_crash(ControllerHarness& h, const std::function<bool()>& now) {
  const auto run = boot_and_start(h);
  bool crashed = false;
  h.news = true;
  const bool ended = h.run_until(
      [&] {
        if (!crashed && now()) {
          crashed = true;
          return true;
        }
        return std::exchange(h.news, false) && has_ended(h.state(run).status);
      },
      std::chrono::minutes(30));
  EXPECT_TRUE(ended);
  if (crashed) {
    h.crash();
    h.boot();
    EXPECT_TRUE(h.run_to_end(run, std::chrono::minutes(30))) << snapshot_of(h.state(run)).state;
  }
  expect_right_end(h, run);
  return crashed;
}

/// One run for each place: dies after the nth thing of a kind for n = 1, 2, ... until a run has
/// fewer. `make_now`: says of a new harness whether its nth thing has come. How often it died; 0
/// after a failure.
int crash_at_each(
    bool agents,
    const std::function<std::function<bool()>(ControllerHarness& h, std::int64_t nth)>& make_now) {
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(fmt::format("after number {}, agents {}", nth, agents));
    ControllerHarness h(3, agents);
    const bool crashed = run_with_crash(h, make_now(h, nth));
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!crashed) {
      return static_cast<int>(nth) - 1;
    }
  }
}

/// `run-started` is journaled before the harness looks, so the first event of a run is the second.
std::function<bool()> nth_event(ControllerHarness& h, std::int64_t nth) {
  return [&h, first = std::optional<std::int64_t>(), nth]() mutable {
    const auto last = h.journal->last_sequence()->value();
    first = first.value_or(last);
    return last >= *first + nth;
  };
}

std::function<bool()> nth_deed(ControllerHarness& h, std::int64_t nth) {
  const auto deeds = std::make_shared<std::int64_t>(0);
  h.cluster.acted = [deeds](const test::FakeNode&, const http::Request&) { ++*deeds; };
  return [deeds, nth] { return *deeds >= nth; };
}

TEST(ControllerCrash, AfterEachJournaledEventTheRunEndsRight) {
  EXPECT_GT(crash_at_each(true, nth_event), 15);
}

TEST(ControllerCrash, AfterEachJournaledEventTheRunEndsRightWithoutAgents) {
  EXPECT_GT(crash_at_each(false, nth_event), 15);
}

TEST(ControllerCrash, AfterEachDeedBeforeItsAnswerTheRunEndsRight) {
  for (const bool agents : {true, false}) {
    EXPECT_GT(crash_at_each(agents, nth_deed), 5);
  }
}

TEST(ControllerCrash, AgainAndAgainTheRunEndsRight) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SeededRandom random(seed);
    ControllerHarness h;
    const auto run = boot_and_start(h);
    bool ended = false;
    for (int life = 0; life < 40 && !ended; ++life) {
      const auto last = h.journal->last_sequence()->value();
      const auto more = static_cast<std::int64_t>(1 + random.below(4));
      ASSERT_TRUE(h.run_until(
          [&] {
            ended = ended || (std::exchange(h.news, false) && has_ended(h.state(run).status));
            return ended || h.journal->last_sequence()->value() >= last + more;
          },
          std::chrono::minutes(30)));
      if (!ended) {
        h.crash();
        h.boot();
      }
    }
    ASSERT_TRUE(h.run_to_end(run));
    ASSERT_NO_FATAL_FAILURE(expect_right_end(h, run));
  }
}

TEST(ControllerCrash, AnOlderControllerNoLongerActs) {
  ControllerHarness h;
  const auto run = boot_and_start(h);
  ASSERT_TRUE(h.run_until([&] { return h.cluster.node("n2").running.has_value(); }));
  ASSERT_TRUE(h.journal->begin_epoch("another").has_value());
  h.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_FALSE(h.cluster.node("n3").running.has_value());
  EXPECT_FALSE(h.cluster.node("n3").last_finished.has_value());
  const auto paused = h.executor->pause(run, "late", "");
  ASSERT_FALSE(paused.has_value());
  EXPECT_EQ(paused.error().code, Errc::kRefused);
}

TEST(ControllerCrash, AFullJournalDiskStopsTheStepsAndTheRunResumesWhenThereIsRoom) {
  ControllerHarness h;
  const auto run = boot_and_start(h);
  ASSERT_TRUE(h.run_until([&] { return h.cluster.node("n2").running.has_value(); }));
  h.disk.set_free_space(0);
  h.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_FALSE(h.cluster.node("n3").running.has_value());
  EXPECT_FALSE(h.cluster.node("n3").last_finished.has_value());
  h.disk.set_free_space(std::nullopt);
  ASSERT_TRUE(h.run_to_end(run));
  expect_right_end(h, run);
}

TEST(ControllerCrash, ReplayGivesTheSameStateAsLiving) {
  ControllerHarness h;
  const auto run = boot_and_start(h);
  ASSERT_TRUE(h.run_to_end(run));
  const auto before = snapshot_of(h.state(run));
  h.crash();
  h.boot();
  const auto after = snapshot_of(h.state(run));
  EXPECT_EQ(before.state, after.state);
  EXPECT_EQ(before.revision, after.revision);
}

TEST(ControllerCrash, ASnapshotAtAnyEventGivesTheSameStateAsAllEvents) {
  ControllerHarness h;
  const auto run = boot_and_start(h);
  ASSERT_TRUE(h.run_to_end(run));
  const auto stream = "run/" + run;
  const auto events = h.journal->read(stream).value();
  ASSERT_GT(events.size(), 20U);

  auto copy = open_sqlite_journal(h.disk, "/state/copy.db", h.time).value();
  const auto epoch = copy->begin_epoch("test").value();
  RunState reported;
  for (const auto& event : events) {
    ASSERT_TRUE(
        copy->append(stream, kAnyRevision, {NewEvent{event.type, event.data}}, epoch).has_value());
    ASSERT_TRUE(apply(reported, copy->read(stream, reported.revision).value().at(0)).has_value());
    // The state of the snapshot before this event, and this event.
    const auto replayed = replay_run(*copy, stream);
    ASSERT_TRUE(replayed.has_value()) << replayed.error().message;
    ASSERT_EQ(snapshot_of(*replayed).state, snapshot_of(reported).state) << event.type;
    ASSERT_TRUE(copy->save_snapshot(snapshot_of(reported), epoch).has_value());
    ASSERT_EQ(snapshot_of(replay_run(*copy, stream).value()).state, snapshot_of(reported).state);
  }
  const auto summary = parse_summary(copy->current_snapshots("run/").value().at(0));
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_EQ(summary->status, RunStatus::kDone);
  EXPECT_EQ(summary->durations.size(), summary_of(reported).durations.size());
  EXPECT_GT(summary->durations.size(), 3U);
}

TEST(ControllerCrash, ASnapshotOfAnotherFormatIsReadAround) {
  ControllerHarness h;
  const auto run = boot_and_start(h);
  ASSERT_TRUE(h.run_to_end(run));
  const auto before = snapshot_of(h.state(run));
  for (const std::string text : {R"({"format":99})", "{}", "no JSON", R"({"format":1})"}) {
    ASSERT_TRUE(h.journal->save_snapshot({before.stream, before.revision, text, text}, h.epoch)
                    .has_value());
    h.crash();
    h.boot();
    EXPECT_EQ(snapshot_of(h.state(run)).state, before.state) << text;
    ASSERT_EQ(h.executor->runs("prod").size(), 1U);
    EXPECT_EQ(h.executor->runs("prod")[0]->status, RunStatus::kDone);
  }
}

TEST(ControllerCrash, PlansAndEndedRunsAreThereAfterARestart) {
  ControllerHarness h;
  const auto run = boot_and_start(h);
  ASSERT_TRUE(h.run_to_end(run));
  const auto hash = h.state(run).plan->hash;
  h.crash();
  h.boot();
  ASSERT_EQ(h.executor->plans("prod").size(), 1U);
  ASSERT_EQ(h.executor->runs("prod").size(), 1U);
  EXPECT_EQ(h.executor->runs("prod")[0]->id, run);
  EXPECT_EQ(h.executor->plans("prod")[0].made_by, "test");
  EXPECT_TRUE(h.executor->plans("another").empty());
  const auto plan = h.executor->find_plan(hash.substr(0, 8));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->plan->hash, hash);
  EXPECT_EQ(h.executor->find_plan(hash.substr(0, 7)).error().code, Errc::kConflict);
  EXPECT_EQ(h.executor->find_plan("00000000").error().code, Errc::kNotFound);
  EXPECT_EQ(h.executor->find_run(run.substr(0, 12)).value()->id, run);
  EXPECT_EQ(h.executor->find_run(run.substr(0, 7)).error().code, Errc::kConflict);
  EXPECT_EQ(h.executor->find_run("").error().code, Errc::kNotFound);
  EXPECT_TRUE(h.executor->active_runs("").empty());
  EXPECT_EQ(h.executor->pause(run, "test", "").error().code, Errc::kConflict);
  EXPECT_EQ(h.executor->pause("none", "test", "").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace verger::controller
