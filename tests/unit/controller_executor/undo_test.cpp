#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/step_support.h"
#include "controller/executor/undo_report.h"
#include "tests/support/controller/painting.h"

namespace verger::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ControllerHarness;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr seconds kUndoDeadline{60};

/// The last step of a stage: it never succeeds, and says when it is its turn.
class TripStep final : public StepKind {
 public:
  TripStep(std::function<void()>& turn, const bool& waits) : turn_(turn), waits_(waits) {}
  [[nodiscard]] std::string_view name() const override { return "trip"; }
  net::awaitable<Readiness> prepare(StepContext) override {
    if (waits_) {
      co_return steps::wait("not yet");
    }
    if (turn_) {
      turn_();
    }
    co_return steps::impossible("it trips");
  }
  net::awaitable<ActAnswer> act(StepContext) override { co_return ActAnswer{}; }
  net::awaitable<Verdict> observe(StepContext) override { co_return Verdict{}; }

 private:
  std::function<void()>& turn_;
  const bool& waits_;
};

/// A stage lowers the priority of three nodes, fails, and is undone.
class UndoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.more_kinds = [this](StepKinds& kinds) {
      kinds.add(std::make_unique<TripStep>(turn_, trip_waits_));
    };
    h_.boot();
    h_.register_cluster();
  }

  static planner::Step lower(const std::string& node) {
    planner::Step step;
    step.id = "lower-" + node;
    step.kind = "set_priority";
    step.node = node;
    step.parameters = planner::Json::Object{
        {"agent", true}, {"onlyIfLeader", false}, {"priority", -1}, {"restore", 0}};
    step.gates = {{"agents-answer", 0}};
    step.undo = "set it back to 0";
    step.attempts = 3;
    return step;
  }

  static planner::Step trip() {
    planner::Step step;
    step.id = "trip";
    step.kind = "trip";
    step.attempts = 1;
    return step;
  }

  std::string start(std::vector<planner::Group> groups) {
    planner::Stage stage;
    stage.id = "lower-all";
    stage.title = "lower";
    stage.deadline_ms = 3'600'000;
    stage.undo_deadline_ms = milliseconds(kUndoDeadline).count();
    stage.on_failure = planner::FailureRule::kUndoAll;
    stage.groups = std::move(groups);
    return test::start_plan(h_, {stage});
  }

  std::string start() { return start({{lower("n1"), lower("n2"), lower("n3")}, {trip()}}); }

  StepStatus status(const std::string& run, const std::string& step) {
    return h_.state(run).steps.at(step).status;
  }

  NodeUndo report(const std::string& run, const std::string& node) {
    for (auto& each : undo_report(h_.state(run))) {
      if (each.node == node) {
        return each;
      }
    }
    ADD_FAILURE() << node << " is not in the report";
    return {};
  }

  /// Since the undo began, in virtual time.
  milliseconds undone_after(const std::string& run, const std::vector<std::string>& nodes) {
    const bool begun = h_.run_until(
        [&] { return h_.state(run).stages.at("lower-all").status == StageStatus::kUndoing; });
    EXPECT_TRUE(begun);
    const auto began = h_.time.monotonic();
    const bool undone = h_.run_until([&] {
      return std::ranges::all_of(nodes, [&](const auto& node) {
        return status(run, "lower-" + node) == StepStatus::kUndone;
      });
    });
    EXPECT_TRUE(undone);
    return std::chrono::duration_cast<milliseconds>(h_.time.monotonic() - began);
  }

  std::function<void()> turn_;
  bool trip_waits_ = false;
  ControllerHarness h_;
};

/// What is wrong with n2 while the stage is undone.
struct Fault {
  const char* name;
  void (*strike)(test::FakeNode&);
  const char* reason;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class UndoBesideAFault : public UndoTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(UndoBesideAFault, UndoesTheOthersAtOnceAndNamesTheOneThatIsLeft) {
  h_.request_deadline = seconds(15);
  turn_ = [this] { GetParam().strike(h_.cluster.node("n2")); };
  const auto run = start();
  EXPECT_LT(undone_after(run, {"n1", "n3"}), seconds(5));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_EQ(h_.cluster.node("n3").priority, 0);
  EXPECT_EQ(report(run, "n2").outcome, UndoOutcome::kUnderWay);

  const auto began = h_.time.monotonic();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_GT(h_.time.monotonic() - began, kUndoDeadline - seconds(10)) << "it is tried until then";
  EXPECT_LT(h_.time.monotonic() - began, kUndoDeadline + seconds(35));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(report(run, "n1").outcome, UndoOutcome::kUndone);
  EXPECT_EQ(report(run, "n3").outcome, UndoOutcome::kUndone);
  const auto left = report(run, "n2");
  EXPECT_EQ(left.outcome, UndoOutcome::kNotUndone);
  EXPECT_THAT(left.reason, HasSubstr(GetParam().reason));
  const std::string command =
      "curl -X POST -d '' -u USER 'http://10.0.0.2:2113/admin/node/priority/0'";
  EXPECT_THAT(left.commands, ::testing::ElementsAre(command));
  EXPECT_THAT(h_.state(run).reason, HasSubstr("trip: it trips; n2 is not undone (lower-n2"));
  EXPECT_THAT(h_.state(run).reason, HasSubstr("run: " + command));
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("by hand: " + command)));
}

TEST_P(UndoBesideAFault, ANodeThatComesBackASecondBeforeTheDeadlineIsUndone) {
  h_.request_deadline = seconds(15);
  turn_ = [this] { GetParam().strike(h_.cluster.node("n2")); };
  const auto run = start();
  EXPECT_LT(undone_after(run, {"n1", "n3"}), seconds(5));
  const auto began = h_.state(run).stages.at("lower-all").started->value();
  const auto late = began + milliseconds(kUndoDeadline - seconds(1)).count() * kTicksPerMillisecond;
  static_cast<void>(h_.run_until([&] { return h_.time.now().value() >= late; }));
  auto& n2 = h_.cluster.node("n2");
  n2.up = true;
  n2.agent_up = true;
  n2.hangs = false;
  n2.agent_hangs = false;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(report(run, "n2").outcome, UndoOutcome::kUndone) << report(run, "n2").reason;
  EXPECT_EQ(n2.priority, 0);
  EXPECT_EQ(h_.state(run).reason, "trip: it trips");
}

TEST_F(UndoTest, WhatComesAfterTheEndOfAStepIsNotItsTime) {
  turn_ = [this] { h_.cluster.node("n2").agent_up = false; };
  const auto run = start();
  undone_after(run, {"n1", "n3"});
  h_.run_until([] { return false; }, seconds(30));
  h_.cluster.node("n2").agent_up = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(report(run, "n2").outcome, UndoOutcome::kUndone);
  EXPECT_LT(h_.state(run).steps.at("lower-n2").time.preparing_ms, 10'000);
}

TEST_P(UndoBesideAFault, AControllerThatDiesInTheMiddleFinishesIt) {
  turn_ = [this] { GetParam().strike(h_.cluster.node("n2")); };
  const auto started = start();
  ASSERT_TRUE(h_.run_to_end(started));
  const auto total = static_cast<std::int64_t>(h_.events(started).size());
  for (std::int64_t nth = 5; nth < total; ++nth) {
    SCOPED_TRACE(nth);
    for (auto& node : h_.cluster.nodes) {
      node.up = node.agent_up = true;
      node.hangs = node.agent_hangs = false;
      node.priority = 0;
    }
    const auto run = start();
    const auto first = h_.journal->last_sequence()->value();
    ASSERT_TRUE(h_.run_until([&] {
      return h_.journal->last_sequence()->value() >= first + nth || has_ended(h_.state(run).status);
    }));
    const auto crashed = h_.time.monotonic();
    h_.crash();
    h_.boot();
    ASSERT_TRUE(h_.run_to_end(run));
    ASSERT_LT(h_.time.monotonic() - crashed, kUndoDeadline + seconds(35));
    ASSERT_EQ(h_.state(run).status, RunStatus::kFailed);
    ASSERT_EQ(h_.cluster.node("n1").priority, 0);
    ASSERT_EQ(h_.cluster.node("n3").priority, 0);
    ASSERT_EQ(report(run, "n1").outcome, UndoOutcome::kUndone);
    ASSERT_EQ(report(run, "n2").outcome, UndoOutcome::kNotUndone);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, UndoBesideAFault,
    ::testing::Values(
        Fault{"DeadNode", [](test::FakeNode& node) { node.up = false; }, "connection refused"},
        Fault{"DeadAgent", [](test::FakeNode& node) { node.agent_up = false; },
              "connection refused"},
        Fault{"DeadNodeAndAgent", [](test::FakeNode& node) { node.up = node.agent_up = false; },
              "connection refused"},
        Fault{"FrozenNodeAndAgent",
              [](test::FakeNode& node) { node.hangs = node.agent_hangs = true; }, "no answer"},
        Fault{"FrozenAgent", [](test::FakeNode& node) { node.agent_hangs = true; }, "no answer"}),
    [](const auto& info) { return info.param.name; });

TEST_F(UndoTest, AStepWhoseNodeDiesBesideTheOneThatFailsDelaysNoUndo) {
  // n2 dies with the request; without an end to wait for, its stage would wait an hour for it.
  trip_waits_ = true;
  h_.cluster.fate = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n2" && request.target.ends_with("/operations")) {
      trip_waits_ = false;
      h_.cluster.node("n2").up = h_.cluster.node("n2").agent_up = false;
      return std::optional(test::Fate::kReplyLost);
    }
    return std::optional<test::Fate>();
  };
  const auto run = start({{lower("n1"), lower("n2"), trip()}});
  ASSERT_TRUE(h_.run_until([&] { return status(run, "lower-n2") == StepStatus::kActing; }));
  EXPECT_LT(undone_after(run, {"n1"}), seconds(5));
  ASSERT_TRUE(h_.run_to_end(run, kUndoDeadline + seconds(60)));
  EXPECT_EQ(report(run, "n2").outcome, UndoOutcome::kNotUndone);
}

TEST_F(UndoTest, ARequestThatIsNotAnsweredDelaysNoOtherUndo) {
  h_.request_deadline = seconds(15);
  trip_waits_ = true;
  h_.cluster.fate = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n2" && request.target.ends_with("/operations") && trip_waits_) {
      trip_waits_ = false;
      return std::optional(test::Fate::kReplyLost);
    }
    return std::optional<test::Fate>();
  };
  const auto run = start({{lower("n1")}, {lower("n2"), trip()}});
  ASSERT_TRUE(h_.run_until([&] { return status(run, "trip") == StepStatus::kFailed; }));
  const auto failed = h_.time.monotonic();
  EXPECT_FALSE(h_.state(run).steps.at("lower-n2").acted) << "its request is pending";
  ASSERT_TRUE(h_.run_until([&] { return status(run, "lower-n1") == StepStatus::kUndone; }));
  EXPECT_LT(h_.time.monotonic() - failed, seconds(3));
  EXPECT_EQ(status(run, "lower-n2"), StepStatus::kActing) << "its request is still pending";

  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(report(run, "n2").outcome, UndoOutcome::kUndone) << report(run, "n2").reason;
  EXPECT_EQ(h_.cluster.node("n2").priority, 0);
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(h_.state(run).reason, "trip: it trips");
}

TEST_F(UndoTest, ACancelUndoesTheOthersBesideAPendingRequest) {
  h_.request_deadline = seconds(15);
  bool requested = false;
  h_.cluster.fate = [&](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n2" && request.target.ends_with("/operations")) {
      h_.cluster.node("n2").hangs = h_.cluster.node("n2").agent_hangs = requested = true;
      return std::optional(test::Fate::kReplyLost);
    }
    return std::optional<test::Fate>();
  };
  const auto run = start({{lower("n1")}, {lower("n2")}, {trip()}});
  ASSERT_TRUE(h_.run_until([&] { return requested; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "enough").has_value());
  const auto cancelled = h_.time.monotonic();
  ASSERT_TRUE(h_.run_until([&] { return status(run, "lower-n1") == StepStatus::kUndone; }));
  EXPECT_LT(h_.time.monotonic() - cancelled, seconds(3));
  ASSERT_TRUE(h_.run_to_end(run, kUndoDeadline + seconds(60)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(report(run, "n2").outcome, UndoOutcome::kNotUndone);
}

TEST_F(UndoTest, ACancelUndoesTheHealthyNodesBesideADeadOne) {
  h_.cluster.fate = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n2" && request.target.ends_with("/operations")) {
      h_.cluster.node("n2").up = h_.cluster.node("n2").agent_up = false;
      return std::optional(test::Fate::kReplyLost);
    }
    return std::optional<test::Fate>();
  };
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return status(run, "lower-n2") == StepStatus::kUnknown; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "enough").has_value());
  EXPECT_LT(undone_after(run, {"n1", "n3"}), seconds(5));
  ASSERT_TRUE(h_.run_to_end(run, kUndoDeadline + seconds(60)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n2 is not undone"));
}

TEST_F(UndoTest, ARequestThatIsStillUnderWayIsShutOutFirst) {
  auto& n2 = h_.cluster.node("n2");
  trip_waits_ = true;
  h_.cluster.fate = [this, &n2](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n2" && request.target.ends_with("/operations") && n2.operations.empty()) {
      trip_waits_ = false;
      n2.agent_up = false;
      return std::optional(test::Fate::kLost);
    }
    return std::optional<test::Fate>();
  };
  const auto run = start({{lower("n2"), trip()}});
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).stages.at("lower-all").status == StageStatus::kUndoing; }));
  static_cast<void>(h_.run_until([] { return false; }, seconds(10)));
  h_.cluster.fate = nullptr;
  n2.agent_up = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(report(run, "n2").outcome, UndoOutcome::kUndone);
  std::vector<std::string> open;
  for (const auto& [key, until] : n2.permits) {
    if (key.find("undo") == std::string::npos && until > h_.time.monotonic()) {
      open.push_back(key);
    }
  }
  EXPECT_THAT(open, IsEmpty()) << "the lost request would be let in";
}

TEST_F(UndoTest, OtherAgentsAreNotAskedAndGatesAreNotLookedAt) {
  std::vector<std::string> permits;
  turn_ = [&] {
    h_.cluster.node("n3").agent_up = false;  // closes agents-answer, which all steps have
    h_.cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
      if (request.target.ends_with("/permits")) {
        permits.push_back(node.name);
      }
    };
  };
  const auto run = start({{lower("n1")}, {trip()}});
  EXPECT_LT(undone_after(run, {"n1"}), seconds(5));
  EXPECT_THAT(permits, Not(IsEmpty()));
  EXPECT_THAT(permits, ::testing::Each("n1"));
  h_.cluster.acted = nullptr;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).reason, "trip: it trips");
}

TEST_F(UndoTest, OfOneNodeTheLastStepIsUndoneFirst) {
  auto second = lower("n1");
  second.id = "lower-n1-more";
  second.parameters = planner::Json::Object{
      {"agent", true}, {"onlyIfLeader", false}, {"priority", -2}, {"restore", -1}};
  const auto run = start({{lower("n1")}, {second}, {trip()}});
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  std::vector<std::string> undone;
  for (const auto& event : *h_.journal->read("run/" + run)) {
    if (event.type == events::kStepUndone) {
      undone.push_back(nlohmann::json::parse(event.data).at("step"));
    }
  }
  EXPECT_THAT(undone, ::testing::ElementsAre("lower-n1-more", "lower-n1"));
}

}  // namespace
}  // namespace verger::controller
