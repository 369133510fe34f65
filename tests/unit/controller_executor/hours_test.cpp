#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"
#include "tests/support/controller/said_hours.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using test::SaidHours;
using ::testing::Contains;
using ::testing::HasSubstr;

class PeakHours : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.cluster.scavenge_takes = std::chrono::seconds(20);
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.make_hours = [this](Journal&, ControllerEpoch) { return &hours_; };
    h_.boot();
    h_.register_cluster();
    h_.cluster.acted = [this](const test::FakeNode&, const http::Request& request) {
      if (request.target == "/agent/v1/operations") {
        const auto body = json::parse(request.body);
        const auto kind = body.at("kind").get<std::string>();
        const bool restores =
            kind == "set_priority" && body.at("parameters").at("priority").get<int>() != -1;
        acts_while_closed_ += hours_.open || restores ? 0 : 1;
      }
    };
  }
  void TearDown() override { EXPECT_EQ(acts_while_closed_, 0); }

  bool scavenges(const std::string& node) {
    return h_.run_until([&] { return h_.cluster.node(node).running.has_value(); });
  }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  void expect_done_once(const std::string& run) {
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    for (const auto& node : h_.cluster.nodes) {
      EXPECT_EQ(node.finished.at(0), 1) << node.name;
      EXPECT_EQ(node.priority, 0) << node.name;
    }
    EXPECT_EQ(h_.state(run).planned_moves(), 1);
  }
  [[nodiscard]] Ticks in(std::chrono::seconds time) {
    return Ticks(h_.time.now().value() + time.count() * kTicksPerSecond);
  }

  SaidHours hours_;
  int acts_while_closed_ = 0;
  ControllerHarness h_;
};

TEST_F(PeakHours, StopTheScavengeAtTheirStartAndItResumesAtTheirEnd) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(scavenges("n2"));
  pass(std::chrono::seconds(2));
  hours_.open = false;
  hours_.until = in(std::chrono::minutes(5));
  pass(std::chrono::seconds(2));
  EXPECT_FALSE(h_.cluster.node("n2").running.has_value());
  EXPECT_EQ(h_.cluster.node("n2").unfinished, 0);
  pass(std::chrono::minutes(5));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("office hours"));
  EXPECT_TRUE(h_.alerts(run).empty());
  hours_.open = true;
  hours_.until.reset();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.node("n2").scavenge_starts, 2);
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n2").attempt, 1) << "being stopped costs no attempt";
}

TEST_F(PeakHours, AStageThatWasUndoneInThemIsNotUndoneAgainAndAgain) {
  h_.cluster.resigner_wins = 1;
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] {
    const auto resign = h_.state(run).steps.at("resign-n1");
    return resign.attempt == 1 && resign.status == StepStatus::kPending;
  }));
  hours_.open = false;
  hours_.until = in(std::chrono::minutes(10));
  pass(std::chrono::minutes(1));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  const auto before = h_.state(run).revision;
  pass(std::chrono::minutes(8));
  EXPECT_EQ(h_.state(run).revision, before) << "the run waits";
  hours_.open = true;
  hours_.until.reset();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(PeakHours, WhatCannotBeUndoneInThemIsTriedEverMoreSeldomAndReportedOnce) {
  h_.cluster.resigner_wins = 1;
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] {
    const auto resign = h_.state(run).steps.at("resign-n1");
    return resign.attempt == 1 && resign.status == StepStatus::kPending;
  }));
  bool refuses = true;
  h_.cluster.fate = [&](const test::FakeNode&, const http::Request& request) {
    const bool restores = request.target == "/agent/v1/operations" && refuses &&
                          json::parse(request.body).at("kind") == "set_priority";
    return restores ? std::optional(test::Fate::kRefusedConnection) : std::nullopt;
  };
  hours_.open = false;
  hours_.until = in(std::chrono::hours(9));
  const auto before = h_.state(run).revision.value();
  pass(std::chrono::hours(2));
  EXPECT_LT(h_.state(run).revision.value() - before, 300) << "each try, a minute apart";
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("could not be undone in time")));
  const auto alerts = h_.alerts(run).size();
  refuses = false;
  pass(std::chrono::minutes(2));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0) << "as soon as it can be";
  const auto restored = h_.state(run).revision;
  pass(std::chrono::hours(6));
  EXPECT_EQ(h_.state(run).revision, restored);
  EXPECT_EQ(h_.alerts(run).size(), alerts);
  hours_.open = true;
  hours_.until.reset();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(PeakHours, ThatAreTakenAwayAreNotWaitedFor) {
  hours_.open = false;
  hours_.until = in(std::chrono::minutes(10));
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  pass(std::chrono::minutes(1));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  hours_.open = true;  // an operator deletes a freeze, and watches
  hours_.until.reset();
  pass(std::chrono::seconds(6));
  EXPECT_NE(h_.state(run).status, RunStatus::kWaiting);
  ASSERT_TRUE(h_.run_to_end(run));
}

TEST_F(PeakHours, AreNotSpentLookingAtTheClusterEachSecond) {
  hours_.open = false;
  hours_.until = in(std::chrono::minutes(10));
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  int looks = 0;
  h_.cluster.dress = [&](const test::FakeNode& node, const http::Request& request,
                         http::Response&) {
    looks += node.name == "n1" && request.target == "/gossip" ? 1 : 0;
  };
  pass(std::chrono::minutes(9));
  EXPECT_LE(looks, 24);
  EXPECT_GE(looks, 17) << "a leader that moves is noticed all the same";
  pass(std::chrono::milliseconds((hours_.until->value() - h_.time.now().value()) /
                                 kTicksPerMillisecond));
  hours_.open = true;
  hours_.until.reset();
  pass(std::chrono::seconds(5));
  EXPECT_NE(h_.state(run).status, RunStatus::kWaiting) << "it begins when they open";
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(PeakHours, StopItAlsoAfterTheControllerWasDown) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(scavenges("n2"));
  h_.crash();
  hours_.open = false;
  h_.boot();
  pass(std::chrono::seconds(2));
  EXPECT_FALSE(h_.cluster.node("n2").running.has_value());
  hours_.open = true;
  hours_.until.reset();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(PeakHours, LeaveTheScavengeToEndWhereThePolicySaysSo) {
  auto policy = ControllerHarness::quick_policy();
  policy.pauses.on_close = planner::PauseRule::kLeave;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(scavenges("n2"));
  hours_.open = false;
  pass(std::chrono::minutes(5));
  EXPECT_EQ(h_.cluster.node("n2").finished.at(0), 1);
  EXPECT_FALSE(h_.cluster.node("n3").running.has_value());
  hours_.open = true;
  hours_.until.reset();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.node("n2").scavenge_starts, 1);
}

TEST_F(PeakHours, ANonInterruptibleStepIsNotBegunUnlessItFits) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n3").last_finished.has_value(); }));
  hours_.until = in(std::chrono::seconds(40));  // a move may take 70
  pass(std::chrono::seconds(30));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_EQ(h_.cluster.total_resigns(), 0);
  EXPECT_THAT(h_.state(run).steps.at("lower-n1").reason, HasSubstr("cannot be interrupted"));
  hours_.until = in(std::chrono::hours(1));
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(PeakHours, RaiseAnAlertWhereAStepWouldNotFitIntoAllOfThem) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n3").last_finished.has_value(); }));
  hours_.since = h_.time.now();
  hours_.until = in(std::chrono::seconds(40));  // a move takes up to 71
  pass(std::chrono::seconds(10));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("lower-n1 does not fit into its hours")));
  hours_.until = in(std::chrono::hours(1));
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.state(run).open_alerts(), 0U);
}

TEST_F(PeakHours, RaiseAnAlertAfterADayOfNotFitting) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n3").last_finished.has_value(); }));
  hours_.until = in(std::chrono::seconds(40));  // of a long opening the end is left
  pass(std::chrono::seconds(10));
  EXPECT_TRUE(h_.alerts(run).empty());
  hours_.open = false;
  hours_.until = in(std::chrono::hours(30));
  pass(std::chrono::hours(23));
  EXPECT_TRUE(h_.alerts(run).empty());
  pass(std::chrono::hours(2));
  hours_.open = true;
  hours_.until = in(std::chrono::seconds(40));
  pass(std::chrono::minutes(1));
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("does not fit into its hours")));
}

TEST_F(PeakHours, DoNotTakeAnUnknownDurationForNone) {
  ControllerHarness h(3, /*with_agents=*/false);  // the databases' sizes are not known
  SaidHours hours;
  h.make_hours = [&hours](Journal&, ControllerEpoch) { return &hours; };
  hours.until = Ticks(h.time.now().value() + std::int64_t{8} * 3'600 * kTicksPerSecond);
  h.options.poll_interval = std::chrono::milliseconds(500);
  h.boot();
  h.register_cluster();
  auto policy = ControllerHarness::quick_policy();
  policy.pauses.on_close = planner::PauseRule::kLeave;
  const auto run = h.start_scavenge(policy);
  h.run_until([] { return false; }, std::chrono::minutes(5));
  for (const auto& node : h.cluster.nodes) {
    EXPECT_EQ(node.scavenge_starts, 0) << node.name;
  }
  EXPECT_THAT(h.state(run).reason, HasSubstr("how long it takes is not known"));
  EXPECT_EQ(h.state(run).open_alerts(), 1U);
  hours.until.reset();
  ASSERT_TRUE(h.run_to_end(run));
  EXPECT_EQ(h.state(run).status, RunStatus::kDone) << h.state(run).reason;
  EXPECT_EQ(h.state(run).open_alerts(), 0U);
}

TEST_F(PeakHours, ThatBeginInTheMiddleOfAMoveRestoreThePriority) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n1").priority == -1; }));
  hours_.open = false;  // a window that was added this minute
  pass(std::chrono::seconds(30));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_EQ(h_.cluster.total_resigns(), 0);
  hours_.open = true;
  hours_.until.reset();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(PeakHours, LetNoDeadlineRun) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.gate_deadline_ms = 10'000;
  policy.limits.move_deadline_ms = 100'000;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n3").last_finished.has_value(); }));
  hours_.open = false;
  pass(std::chrono::minutes(5));
  hours_.open = true;
  hours_.until.reset();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_TRUE(h_.alerts(run).empty());
}

/// Step that meets the closed gate, and the one before it.
class ClosedGate : public PeakHours,
                   public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(ClosedGate, TellsValueLimitAndSinceWhen) {
  const auto [waiting, before] = GetParam();
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  const auto step = [this, &run](const char* id) { return h_.state(run).steps.at(id); };
  ASSERT_TRUE(h_.run_until([&] { return step(before).status == StepStatus::kDone; }));
  h_.cluster.node("n1").writer = std::int64_t{1} << 40U;
  ASSERT_TRUE(h_.run_until([&] { return step(waiting).status == StepStatus::kWaiting; }));
  const auto gates = json::parse(step(waiting).gates);
  ASSERT_GE(gates.size(), 1U);
  EXPECT_EQ(gates[0]["gate"], "lag-below");
  EXPECT_EQ(gates[0]["limit"], "16 MiB");
  const auto since = gates[0]["since"];
  pass(std::chrono::minutes(1));
  h_.cluster.node("n1").writer = std::int64_t{1} << 41U;
  pass(std::chrono::seconds(5));
  const auto later = json::parse(step(waiting).gates);
  EXPECT_EQ(later[0]["since"], since) << "a new value is no new closing";
  EXPECT_NE(later[0]["value"], gates[0]["value"]);
  for (auto& node : h_.cluster.nodes) {
    node.writer = h_.cluster.node("n1").writer;
  }
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(step(waiting).gates, "[]");
  expect_done_once(run);
}

INSTANTIATE_TEST_SUITE_P(OfADigestAndOfAScavenge, ClosedGate,
                         ::testing::Values(std::pair("record-n1", "scavenge-n2"),
                                           std::pair("scavenge-n3", "record-n1")));

}  // namespace
}  // namespace verger::controller
