#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using ::testing::AllOf;
using ::testing::Contains;

/// Walls that outlive controllers.
struct Walls {
  std::map<std::string, std::string> colour;
  std::map<std::string, int> painted;
  std::map<std::string, int> stripped;
  std::string breaks;  ///< painting it fails
  std::string sticks;  ///< its paint does not come off
  int at_once = 0;
  int at_once_max = 0;
};

/// A kind that exists only here: the executor's core has never heard of it.
class PaintStep final : public StepKind {
 public:
  explicit PaintStep(Walls& walls, http::Timers& timers) : walls_(walls), timers_(timers) {}
  [[nodiscard]] std::string_view name() const override { return "paint"; }
  [[nodiscard]] bool can_undo() const override { return true; }
  net::awaitable<Readiness> prepare(StepContext) override { co_return Readiness{}; }
  net::awaitable<ActAnswer> act(StepContext context) override {
    ++walls_.at_once;
    walls_.at_once_max = std::max(walls_.at_once_max, walls_.at_once);
    co_await timers_.sleep_for(std::chrono::seconds(1));
    --walls_.at_once;
    if (context.step.node != walls_.breaks) {
      walls_.colour[context.step.node] = *context.step.parameters.at("colour").as_string();
      ++walls_.painted[context.step.node];
    }
    co_return ActAnswer{ActAnswer::Kind::kUnknown, "painters do not answer", "{}"};
  }
  net::awaitable<Verdict> observe(StepContext context) override {
    Verdict out;
    if (context.step.node == walls_.breaks) {
      out.kind = Verdict::Kind::kFailed;
      out.reason = "the wall fell down";
    } else if (walls_.colour[context.step.node].empty()) {
      out.kind = Verdict::Kind::kNotHappened;
      out.reason = "it is bare";
    } else {
      out.kind = Verdict::Kind::kDone;
    }
    co_return out;
  }
  net::awaitable<ActAnswer> undo(StepContext context) override {
    if (context.step.node != walls_.sticks) {
      walls_.colour[context.step.node].clear();
    }
    ++walls_.stripped[context.step.node];
    co_return ActAnswer{ActAnswer::Kind::kUnknown, "", "{}"};
  }
  net::awaitable<Verdict> observe_undo(StepContext context) override {
    Verdict out;
    out.kind = walls_.colour[context.step.node].empty() ? Verdict::Kind::kDone
                                                        : Verdict::Kind::kNotHappened;
    co_return out;
  }

 private:
  Walls& walls_;
  http::Timers& timers_;
};

planner::Step paint(const std::string& node) {
  planner::Step step;
  step.id = "paint-" + node;
  step.kind = "paint";
  step.node = node;
  step.parameters = planner::Json::Object{{"colour", "green"}};
  step.gates = {{"voters-alive", 0}};
  step.reason = "green is restful";
  step.attempts = 2;
  return step;
}

class SecondKind : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.more_kinds = [this](StepKinds& kinds) {
      kinds.add(std::make_unique<PaintStep>(walls_, h_.time));
    };
    h_.boot();
    h_.register_cluster();
  }

  /// A plan with n1 and n2 side by side, then n3; as if it had been planned.
  std::string start() {
    const auto snapshot = *h_.wait_for(h_.executor->observe("prod"));
    planner::Plan plan;
    plan.cluster = "prod";
    plan.policy = ControllerHarness::quick_policy();
    plan.basis = planner::basis_of(snapshot);
    planner::Stage stage;
    stage.id = "paint-all";
    stage.title = "paint";
    stage.deadline_ms = 600'000;
    stage.undo_deadline_ms = 60'000;
    stage.on_failure = planner::FailureRule::kUndoAll;
    stage.groups = {{paint("n1"), paint("n2")}, {paint("n3")}};
    plan.stages = {stage};
    plan.made_at = h_.time.now();
    plan.hash = planner::hash_of(plan);
    const auto text = fmt::format(R"({{"by":"test","plan":{}}})", planner::text_of(plan));
    const auto epoch = *h_.journal->epoch();
    const auto stream = "plan/" + plan.hash;
    if (h_.journal->revision(stream)->value() == 0) {
      EXPECT_TRUE(
          h_.journal->append(stream, Revision(0), {{std::string(events::kPlanMade), text}}, epoch)
              .has_value());
    }
    h_.crash();
    h_.boot();
    auto run = h_.wait_for(h_.executor->apply(plan.hash, "test"));
    EXPECT_TRUE(run.has_value()) << run.error().error.message;
    return *run;
  }

  Walls walls_;
  ControllerHarness h_;
};

TEST_F(SecondKind, RunsTwoStepsSideBySideAndTheNextGroupAfterThem) {
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
