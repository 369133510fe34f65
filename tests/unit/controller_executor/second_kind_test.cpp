#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "tests/support/controller/painting.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using test::PaintStep;
using test::Walls;
using ::testing::Contains;

class SecondKind : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.more_kinds = [this](StepKinds& kinds) {
      kinds.add(std::make_unique<PaintStep>(walls_, h_.time));
    };
    h_.boot();
    h_.register_cluster();
  }

  std::string start() { return test::start_plan(h_, {test::painting()}); }

  Walls walls_;
  ControllerHarness h_;
};

TEST_F(SecondKind, RunsTwoStepsInParallelAndTheNextGroupAfterThem) {
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(walls_.at_once_max, 2);
  EXPECT_EQ(walls_.painted, (std::map<std::string, int>{{"n1", 1}, {"n2", 1}, {"n3", 1}}));
}

TEST_F(SecondKind, UndoesBothWhenALaterStepFails) {
  walls_.breaks = "n3";
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(h_.state(run).steps.at("paint-n1").status, StepStatus::kUndone);
  EXPECT_EQ(h_.state(run).steps.at("paint-n2").status, StepStatus::kUndone);
  EXPECT_EQ(walls_.colour["n1"], "");
  EXPECT_EQ(walls_.colour["n2"], "");
  EXPECT_EQ(walls_.stripped["n1"], 1);
  EXPECT_EQ(walls_.stripped["n2"], 1);
}

TEST_F(SecondKind, UndoesEachNodeInItsOwnTimeWhileAnotherCannotBeUndone) {
  walls_.breaks = "n3";
  walls_.sticks = "n2";
  const auto run = start();
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).stages.at("paint-all").status == StageStatus::kUndoing; }));
  // n2 is the first in the order of undoing.
  EXPECT_TRUE(
      h_.run_until([&] { return h_.state(run).steps.at("paint-n1").status == StepStatus::kUndone; },
                   std::chrono::seconds(10)));
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(walls_.colour["n1"], "");
  EXPECT_EQ(walls_.colour["n2"], "green");
  EXPECT_THAT(h_.alerts(run), Contains(::testing::HasSubstr("paint-n2 could not be undone")));
}

TEST_F(SecondKind, UndoesTheOneThatWorkedWhenTheOneBesideItFails) {
  walls_.breaks = "n2";
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(walls_.colour["n1"], "");
  EXPECT_EQ(walls_.painted.count("n3"), 0U);
}

TEST_F(SecondKind, UndoesBothWhereverTheControllerDies) {
  walls_.breaks = "n3";
  const auto started = start();
  ASSERT_TRUE(h_.run_to_end(started));
  const auto total = static_cast<std::int64_t>(h_.events(started).size());
  for (std::int64_t nth = 1; nth < total; ++nth) {
    SCOPED_TRACE(nth);
    walls_ = Walls{};
    walls_.breaks = "n3";
    const auto run = start();
    const auto first = h_.journal->last_sequence()->value();
    ASSERT_TRUE(h_.run_until([&] {
      return h_.journal->last_sequence()->value() >= first + nth || has_ended(h_.state(run).status);
    }));
    h_.crash();
    h_.boot();
    ASSERT_TRUE(h_.run_to_end(run));
    ASSERT_EQ(h_.state(run).status, RunStatus::kFailed);
    ASSERT_EQ(walls_.colour["n1"], "");
    ASSERT_EQ(walls_.colour["n2"], "");
    ASSERT_LE(walls_.painted["n1"], 1);
  }
}

TEST_F(SecondKind, ACancelUndoesTheStage) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return walls_.painted["n1"] == 1; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "ugly").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(walls_.colour["n1"], "");
  EXPECT_EQ(walls_.colour["n2"], "");
}

TEST_F(SecondKind, APlanOfAnUnknownKindIsRefused) {
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  const auto hash = h_.state(run).plan->hash;
  h_.more_kinds = nullptr;
  h_.crash();
  h_.boot();
  const auto refused = h_.wait_for(h_.executor->apply(hash, "test"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().error.code, Errc::kUnsupported);
  EXPECT_THAT(refused.error().error.message, ::testing::HasSubstr("paint-n1"));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << "what has ended is not touched";
}

TEST_F(SecondKind, ARunOfAnUnknownKindFailsAndSaysWhy) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([this] { return walls_.painted["n1"] == 1; }));
  h_.more_kinds = nullptr;
  h_.crash();
  h_.boot();
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::minutes(1)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, ::testing::HasSubstr("does not know the kind \"paint\""));
  EXPECT_THAT(h_.alerts(run),
              Contains(::testing::HasSubstr("could not be undone: this controller")));
}

}  // namespace
}  // namespace verger::controller
