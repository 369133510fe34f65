#include "controller/executor/atomic_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/painting.h"
#include "tests/support/controller/said_hours.h"

namespace verger::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using test::ControllerHarness;
using test::PaintStep;
using test::SaidHours;
using test::Walls;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// All walls or none; each step asks for the hours, and only the first of them gets an answer.
planner::Stage all_or_none() {
  auto out = test::painting();
  out.atomic = true;
  for (auto& group : out.groups) {
    for (auto& step : group) {
      step.gates.push_back({"maintenance-window", 0});
    }
  }
  return out;
}

/// What comes after it, on one wall.
planner::Stage second_coat() {
  auto out = test::painting();
  out.id = "second-coat";
  auto step = test::paint("n1");
  step.id = "coat-n1";
  step.gates.push_back({"maintenance-window", 0});
  out.groups = {{step}};
  return out;
}

struct Site {
  Site() {
    h.more_kinds = [this](StepKinds& kinds) {
      kinds.add(std::make_unique<PaintStep>(walls, h.time));
    };
    h.make_hours = [this](Journal&, ControllerEpoch) { return &hours; };
    h.options.poll_interval = milliseconds(200);
    h.boot();
    h.register_cluster();
  }
  std::string start(std::vector<planner::Stage> stages = {all_or_none(), second_coat()}) {
    run = test::start_plan(h, std::move(stages));
    return run;
  }
  bool reaches(RunStatus status, milliseconds limit = minutes(2)) {
    return h.run_until([&] { return h.state(run).status == status; }, limit);
  }
  bool paints(int walls_painted) {
    return h.run_until([&] { return walls.green() >= walls_painted; }, minutes(2));
  }
  void pass(milliseconds time) {
    h.run_until([] { return false; }, time);
  }
  [[nodiscard]] StepStatus status_of(const std::string& step) {
    return h.state(run).steps.at(step).status;
  }

  Walls walls;
  SaidHours hours;
  std::string run;
  ControllerHarness h;
};

class AtomicStage : public ::testing::Test, protected Site {};
class PausedAtomicStage : public ::testing::TestWithParam<PauseMode>, protected Site {};

INSTANTIATE_TEST_SUITE_P(Modes, PausedAtomicStage,
                         ::testing::Values(PauseMode::kPolicy, PauseMode::kDrain, PauseMode::kNow));

TEST_P(PausedAtomicStage, APauseTakesEffectAfterItAndSaysSo) {
  start();
  ASSERT_TRUE(paints(1));
  ASSERT_LT(walls.green(), 3);
  ASSERT_TRUE(h.executor->pause(run, "me", "", GetParam()).has_value());
  const auto notice = pause_notice(h.state(run), h.time.now());
  EXPECT_THAT(notice, HasSubstr("stage paint-all is under way"));
  EXPECT_THAT(notice, HasSubstr("takes effect when it is done or undone"));
  ASSERT_TRUE(reaches(RunStatus::kPaused));
  EXPECT_EQ(walls.green(), 3);
  EXPECT_TRUE(walls.stripped.empty()) << "it was not rolled back";
  EXPECT_EQ(status_of("coat-n1"), StepStatus::kPending);
  EXPECT_EQ(pause_notice(h.state(run), h.time.now()), "");
  ASSERT_TRUE(h.wait_for(h.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kDone);
}

TEST_P(PausedAtomicStage, APauseThatComesFirstTakesEffectBeforeIt) {
  start();
  ASSERT_TRUE(h.executor->pause(run, "me", "", GetParam()).has_value());
  EXPECT_EQ(pause_notice(h.state(run), h.time.now()), "");
  ASSERT_TRUE(reaches(RunStatus::kPaused));
  EXPECT_EQ(walls.green(), 0);
  ASSERT_TRUE(h.wait_for(h.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(walls.green(), 3);
}

TEST_F(AtomicStage, TheEndOfTheHoursTakesEffectAfterIt) {
  start();
  ASSERT_TRUE(paints(1));
  hours.open = false;
  ASSERT_TRUE(paints(3));
  EXPECT_TRUE(walls.stripped.empty()) << "it was not rolled back";
  pass(seconds(30));
  EXPECT_EQ(status_of("coat-n1"), StepStatus::kWaiting) << "what comes after it waits";
  hours.open = true;
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kDone);
}

TEST_F(AtomicStage, IsNotBegunWhereAllOfItDoesNotFitIntoTheHours) {
  hours.until = Ticks(h.time.now().value() + 3 * kTicksPerSecond);  // 4 s are expected
  start();
  ASSERT_TRUE(reaches(RunStatus::kWaiting));
  EXPECT_THAT(h.state(run).reason, HasSubstr("up to 4 s are expected"));
  pass(seconds(2));
  EXPECT_EQ(walls.green(), 0);
  hours.until.reset();
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kDone);
}

TEST_F(AtomicStage, ACancelUndoesAllOfIt) {
  start();
  ASSERT_TRUE(paints(1));
  ASSERT_TRUE(h.executor->cancel(run, "me", "ugly").has_value());
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(walls.green(), 0);
}

TEST_F(AtomicStage, ASkippedNodeUndoesAllOfItAndTheRunFails) {
  start();
  ASSERT_TRUE(paints(2));
  ASSERT_TRUE(h.wait_for(h.executor->skip_node(run, "n3", "me", "")).has_value());
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h.state(run).reason,
              HasSubstr("n3 is left out, and stage paint-all is done on all of its nodes or on "
                        "none"));
  EXPECT_EQ(walls.green(), 0);
}

TEST_F(AtomicStage, WithoutANodeItIsNotBegun) {
  start();
  ASSERT_TRUE(h.wait_for(h.executor->skip_node(run, "n3", "me", "")).has_value());
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(walls.painted, IsEmpty());
}

TEST_F(AtomicStage, AStepThatComesTooLateUndoesAllOfIt) {
  walls.late = "n3";
  start();
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h.state(run).reason, HasSubstr("paint-n3: the paint is dry"));
  EXPECT_EQ(walls.painted.count("n3"), 0U);
  EXPECT_EQ(walls.green(), 0);
}

TEST_F(AtomicStage, AStepIsTooLateAlsoWhileAGateHoldsItBack) {
  start();
  ASSERT_TRUE(paints(2));
  h.cluster.node("n2").up = false;
  ASSERT_TRUE(h.run_until([&] { return status_of("paint-n3") == StepStatus::kWaiting; }));
  walls.late = "n3";
  h.cluster.node("n2").up = true;
  ASSERT_TRUE(h.run_to_end(run, minutes(5)));
  EXPECT_EQ(h.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(walls.green(), 0);
}

TEST_F(AtomicStage, AValueOfTheRunIsThereWithTheIntentThatItBelongsTo) {
  start();
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).values.at("brush"), "\"n1\"") << "of the second coat";
  const auto types = h.events(run);
  const auto first = std::ranges::find(types, events::kRunValue);
  ASSERT_NE(first, types.end());
  EXPECT_EQ(*(first + 1), events::kStepIntended);
}

TEST_F(AtomicStage, AControllerThatDiesWhileAPauseWaitsFinishesIt) {
  start();
  ASSERT_TRUE(paints(1));
  ASSERT_TRUE(h.executor->pause(run, "me", "", PauseMode::kNow).has_value());
  hours.open = false;
  h.crash();
  h.time.jump(minutes(3));
  h.boot();
  ASSERT_TRUE(reaches(RunStatus::kPaused));
  EXPECT_EQ(walls.green(), 3);
}

/// Of one seed: what people and machines do to a run while it is under way.
class Interventions {
 public:
  explicit Interventions(std::uint64_t seed) : random_(seed) {
    site_.walls.takes = milliseconds(200 + random_.below(3'000));
    if (random_.below(4) == 0) {
      site_.walls.breaks = random_.below(2) == 0 ? "n2" : "n3";
    }
  }

  void play() {
    site_.start({all_or_none()});
    const auto count = 1 + random_.below(8);
    for (std::uint64_t i = 0; i < count && !has_ended(status()); ++i) {
      site_.pass(milliseconds(random_.below(3'000)));
      intervene(random_.below(8));
      site_.h.run_until([this] { return is_half_way_and_stands(); }, milliseconds(500));
      ASSERT_FALSE(is_half_way_and_stands()) << what_;
    }
    site_.hours.open = true;
    site_.h.cluster.node("n3").up = true;
    // What only pauses may end while its cluster is looked at.
    while (status() == RunStatus::kPausing || status() == RunStatus::kPaused) {
      const auto resumed = site_.h.wait_for(site_.h.executor->resume(site_.run, "me"));
      ASSERT_TRUE(resumed.has_value() || has_ended(status())) << what_ << resumed.error().message;
    }
    ASSERT_TRUE(site_.h.run_to_end(site_.run)) << what_;
    const auto green = site_.walls.green();
    ASSERT_EQ(green, status() == RunStatus::kDone ? 3 : 0) << what_;
    ++ends[to_string(status())];
  }
  static inline std::map<std::string_view, int> ends;

 private:
  [[nodiscard]] RunStatus status() { return site_.h.state(site_.run).status; }
  /// What no pause, window, skip or cancel may leave.
  [[nodiscard]] bool is_half_way_and_stands() {
    const bool stands = status() == RunStatus::kPaused || has_ended(status());
    return stands && site_.walls.green() != 0 && site_.walls.green() != 3;
  }
  void intervene(std::uint64_t which) {
    auto& executor = *site_.h.executor;
    what_ += fmt::format(" {}", which);
    switch (which) {
      case 0:
      case 1: {
        static constexpr PauseMode kModes[] = {PauseMode::kPolicy, PauseMode::kDrain,
                                               PauseMode::kNow};
        static_cast<void>(executor.pause(site_.run, "me", "", kModes[random_.below(3)]));
        break;
      }
      case 2:
        static_cast<void>(site_.h.wait_for(executor.resume(site_.run, "me")));
        break;
      case 3:
        site_.hours.open = !site_.hours.open;
        break;
      case 4:
        site_.h.cluster.node("n3").up = !site_.h.cluster.node("n3").up;
        break;
      case 5:
        if (random_.below(3) == 0) {
          static_cast<void>(executor.cancel(site_.run, "me", ""));
        }
        break;
      case 6:
        if (random_.below(3) == 0) {
          static_cast<void>(site_.h.wait_for(
              executor.skip_node(site_.run, random_.below(2) == 0 ? "n2" : "n3", "me", "")));
        }
        break;
      default:
        site_.h.crash();
        site_.h.time.jump(milliseconds(random_.below(20'000)));
        site_.h.boot();
    }
  }

  SeededRandom random_;
  std::string what_;
  Site site_;
};

TEST(AtomicStageSimulation, IsNeverLeftHalfWay) {
  constexpr std::uint64_t kSeeds = 300;
  Interventions::ends.clear();
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Interventions one(seed);
    one.play();
    if (::testing::Test::HasFatalFailure()) {
      return;
    }
  }
  for (const auto end : {"done", "failed", "cancelled"}) {
    EXPECT_GT(Interventions::ends[end], 10) << end << ": no seed met it often enough";
  }
}

}  // namespace
}  // namespace verger::controller
