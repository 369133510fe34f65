#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using test::Fate;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Intents : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.cluster.scavenge_takes = std::chrono::seconds(20);
    h_.boot();
    h_.register_cluster();
  }
  std::string start(planner::Policy policy = ControllerHarness::quick_policy()) {
    return h_.start_scavenge(policy);
  }
  bool reaches(const std::string& run, RunStatus status) {
    h_.news = true;
    return h_.run_until(
        [&] { return std::exchange(h_.news, false) && h_.state(run).status == status; },
        std::chrono::minutes(5));
  }
  bool scavenges(const std::string& node) {
    return h_.run_until([&] { return h_.cluster.node(node).running.has_value(); });
  }
  void expect_done_once(const std::string& run) {
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    for (const auto& node : h_.cluster.nodes) {
      EXPECT_EQ(node.finished.at(0), 1) << node.name;
      EXPECT_EQ(node.priority, 0) << node.name;
    }
    EXPECT_EQ(h_.cluster.points.size(), 1U);
  }
  http::Request first_operation_of_n2_that_gets_lost() {
    std::optional<http::Request> late;
    h_.cluster.fate = [&late](const test::FakeNode& node,
                              const http::Request& request) -> std::optional<Fate> {
      if (late || node.name != "n2" || request.target != "/agent/v1/operations") {
        return std::nullopt;
      }
      late = request;
      return Fate::kLost;
    };
    EXPECT_TRUE(h_.run_until([&late] { return late.has_value(); }));
    h_.cluster.fate = nullptr;
    return late.value();
  }
  Result<http::Response> arrive_at_n2(const http::Request& late) {
    return h_.wait_for(h_.cluster.send({.tls = false, .host = "10.0.0.2", .port = 2114}, late,
                                       std::chrono::seconds(2)));
  }
  ControllerHarness h_;
};

TEST_F(Intents, APauseStopsTheScavengeAndResumeGoesOnAtTheSamePoint) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.run_until([] { return false; }, std::chrono::seconds(2));
  ASSERT_TRUE(h_.executor->pause(run, "me", "peak hours").has_value());
  EXPECT_EQ(h_.state(run).status, RunStatus::kPausing);
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_FALSE(h_.cluster.node("n2").running.has_value());
  EXPECT_EQ(h_.cluster.node("n2").unfinished, 0);
  h_.run_until([] { return false; }, std::chrono::minutes(1));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
  EXPECT_TRUE(h_.executor->pause(run, "me", "again").has_value()) << "a pause always succeeds";

  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.node("n2").scavenge_starts, 2);
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n2").attempt, 1) << "being stopped costs no attempt";
}

TEST_F(Intents, AMessageOfAnIntentThatWasGivenUpFindsNoPermit) {
  const auto run = start();
  const auto late = first_operation_of_n2_that_gets_lost();
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(scavenges("n2"));
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n2").attempt, 1) << "what was never sent costs none";

  const auto answer = arrive_at_n2(late);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 409) << answer->body;
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, AMessageToANodeThatWasSkippedMeanwhileFindsNoPermit) {
  const auto run = start();
  const auto late = first_operation_of_n2_that_gets_lost();
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n2", "me", "")).has_value());
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).steps.at("scavenge-n2").status == StepStatus::kSkipped; }));
  const auto answer = arrive_at_n2(late);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 409) << answer->body;
}

TEST_F(Intents, AnIntentThatIsRefusedWhenItIsSentAgainBeginsAnew) {
  const auto run = start();
  first_operation_of_n2_that_gets_lost();
  // The agent restarts between the second permit and the second message.
  bool forgot = false;
  h_.cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
    if (!forgot && node.name == "n2" && request.target.ends_with("/permits")) {
      forgot = true;
      h_.cluster.node("n2").permits.clear();
    }
  };
  ASSERT_TRUE(h_.run_to_end(run));
  ASSERT_TRUE(forgot);
  expect_done_once(run);
  const auto events = h_.events(run, "scavenge-n2");
  EXPECT_EQ(std::ranges::count(events, "step-intended"), 2);
  // Nothing is sent that was not intended: between the refusal and the next intent it is pending.
  const auto retry = std::ranges::find(events, "step-retry");
  ASSERT_NE(retry, events.end());
  const auto intended = std::find(retry, events.end(), "step-intended");
  EXPECT_EQ(std::count(retry, intended, "step-acted"), 0);
}

TEST_F(Intents, ADurationIsTimeAtWorkWithoutPausesOrTimesInWhichNobodyLooked) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.run_until([] { return false; }, std::chrono::seconds(10));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  h_.run_until([] { return false; }, std::chrono::minutes(50));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(scavenges("n3"));
  h_.crash();
  h_.time.jump(std::chrono::minutes(30));
  h_.boot();
  ASSERT_TRUE(scavenges("n1"));
  h_.cluster.node("n1").running->ends = h_.time.monotonic() + std::chrono::hours(1);
  h_.cluster.node("n1").up = false;  // away, with its agent
  h_.cluster.node("n1").agent_up = false;
  h_.run_until([] { return false; }, std::chrono::minutes(20));
  h_.cluster.node("n1").up = true;
  h_.cluster.node("n1").agent_up = true;
  h_.cluster.node("n1").running->ends = h_.time.monotonic() + std::chrono::seconds(10);
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  std::map<std::string, std::int64_t> took;
  for (const auto& past : h_.executor->runs("prod").front()->durations) {
    if (past.kind == "scavenge") {
      took[past.node] = past.duration_ms / 1000;
    }
  }
  ASSERT_EQ(took.size(), 3U);
  for (const auto& [node, seconds] : took) {
    EXPECT_GE(seconds, 5) << node;
    EXPECT_LE(seconds, 60) << node;
  }
}

TEST_F(Intents, ADurationOfWhatAnotherPartyHadBegunIsNone) {
  h_.cluster.points.push_back(1'000);
  h_.cluster.node("n2").unfinished = 0;
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  ASSERT_EQ(h_.state(run).steps.at("finish-n2").status, StepStatus::kDone);
  int of_n2 = 0;
  for (const auto& past : h_.executor->runs("prod").front()->durations) {
    of_n2 += past.kind == "scavenge" && past.node == "n2" ? 1 : 0;
  }
  EXPECT_EQ(of_n2, 1) << "the one to the new point";
}

TEST_F(Intents, AnAlertIsClearedOnceItsCauseIsOver) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  const auto away = [this](bool yes) {
    h_.cluster.node("n3").up = !yes;
    h_.cluster.node("n3").agent_up = !yes;
  };
  away(true);
  h_.run_until([] { return false; }, std::chrono::minutes(20));
  ASSERT_THAT(h_.alerts(run), Contains(HasSubstr("n3 has not answered")));
  ASSERT_THAT(h_.alerts(run), Contains(HasSubstr("has waited for 5 min: n3")));
  EXPECT_GE(h_.state(run).open_alerts(), 2U);
  const auto reported = h_.alerts(run).size();
  away(false);
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").running.has_value(); }));
  h_.run_until([] { return false; }, std::chrono::seconds(5));
  EXPECT_EQ(h_.state(run).open_alerts(), 0U);
  EXPECT_EQ(h_.alerts(run).size(), reported) << "what was reported stays on record";
  ASSERT_TRUE(h_.state(run).alerts[0].cleared_at.has_value());
  EXPECT_GT(*h_.state(run).alerts[0].cleared_at, h_.state(run).alerts[0].at);
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, AFullDiskRaisesAnAlertWithinMinutes) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.cluster.node("n3").disk_free = 0;
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).steps.at("scavenge-n3").status == StepStatus::kWaiting; }));
  h_.run_until([] { return false; }, std::chrono::minutes(4));
  EXPECT_EQ(h_.state(run).open_alerts(), 0U);
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_EQ(h_.state(run).open_alerts(), 1U);
  EXPECT_THAT(h_.alerts(run), Contains(AllOf(HasSubstr("for 5 min"), HasSubstr("free"))));
}

TEST_F(Intents, WhatAnAgentDoesNotKnowYetIsShownInItsOwnWordsAndAskedEverMoreSeldom) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  auto& n2 = h_.cluster.node("n2");
  auto& status = n2.operations.begin()->second.status;
  status.state = api::OperationState::kUnknown;
  status.error = "the server is stopped and does not start: no space left on device";
  n2.running->ends = Monotonic::max();
  h_.run_until([] { return false; }, std::chrono::seconds(10));
  EXPECT_THAT(h_.state(run).steps.at("scavenge-n2").reason, HasSubstr("does not start: no space"));
  int asked = 0;
  h_.cluster.dress = [&asked](const test::FakeNode&, const http::Request& request,
                              http::Response&) {
    asked += request.target.starts_with("/agent/v1/operations/") ? 1 : 0;
  };
  h_.run_until([] { return false; }, std::chrono::seconds(100));
  EXPECT_LE(asked, 110) << "ten times more seldom than what works";
  EXPECT_GE(asked, 50);
}

TEST_F(Intents, APauseLeavesTheScavengeToEndWhereThePolicySaysSo) {
  auto policy = ControllerHarness::quick_policy();
  policy.pauses.on_pause = planner::PauseRule::kLeave;
  const auto run = start(policy);
  ASSERT_TRUE(scavenges("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n2").finished.at(0), 1);
  EXPECT_FALSE(h_.cluster.node("n3").running.has_value());
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, APauseOutlivesACrash) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  h_.crash();
  h_.boot();
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_FALSE(h_.cluster.node("n2").running.has_value());
  h_.crash();
  h_.boot();
  h_.run_until([] { return false; }, std::chrono::minutes(1));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, APauseWhileTheNodeIsDownSucceedsAndSaysWhatItWaitsFor) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  h_.cluster.node("n3").up = false;
  h_.cluster.node("n3").agent_up = false;
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  h_.run_until([] { return false; }, std::chrono::seconds(30));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPausing);
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n3").status, StepStatus::kUnknown);
  EXPECT_THAT(h_.state(run).steps.at("scavenge-n3").reason, Not(::testing::IsEmpty()));
  h_.cluster.node("n3").up = true;
  h_.cluster.node("n3").agent_up = true;
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, ResumeRefusesWhatNoLongerHolds) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  h_.cluster.node("n3").version = "24.10.0";
  const auto resumed = h_.wait_for(h_.executor->resume(run, "me"));
  ASSERT_FALSE(resumed.has_value());
  EXPECT_EQ(resumed.error().code, Errc::kConflict);
  EXPECT_THAT(resumed.error().message, HasSubstr("n3: version was 24.6.0, is 24.10.0"));
  EXPECT_EQ(h_.state(run).status, RunStatus::kPaused);
}

TEST_F(Intents, ACancelStopsWhatRunsAndEndsInASafeState) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "wrong cluster").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.state(run).reason, "wrong cluster");
  EXPECT_FALSE(h_.cluster.node("n3").running.has_value());
  EXPECT_EQ(h_.cluster.node("n3").unfinished, 0);
  const auto late = h_.executor->pause(run, "me", "");
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kConflict);
}

TEST_F(Intents, ACancelInTheMiddleOfAMoveRestoresThePriority) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
}

TEST_F(Intents, ACancelledMoveRestoresThePriorityThoughAnotherNodesAgentIsSilent) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  h_.cluster.node("n3").agent_up = false;
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::minutes(2)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_TRUE(h_.alerts(run).empty());
}

TEST_F(Intents, APriorityIsSetBackAfterTheMoveThoughAnotherNodesAgentIsSilent) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.total_resigns() == 1; }));
  h_.cluster.node("n3").agent_up = false;
  EXPECT_TRUE(
      h_.run_until([&] { return h_.state(run).steps.at("restore-n1").status == StepStatus::kDone; },
                   std::chrono::minutes(2)));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
}

TEST_F(Intents, ACrashInTheMiddleOfACancelledMoveRestoresThePriorityToo) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  h_.crash();
  h_.boot();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
}

TEST_F(Intents, APauseInTheMiddleOfAMoveRestoresThePriorityAndResumeMovesOnce) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  EXPECT_EQ(h_.cluster.total_resigns(), 0);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.state(run).planned_moves(), 1);
}

TEST_F(Intents, APauseAfterTheResignationRestoresThePriorityAndMovesNobodyAgain) {
  h_.cluster.election_takes = std::chrono::seconds(3);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.total_resigns() == 1; }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.total_resigns(), 1);
  EXPECT_EQ(h_.state(run).planned_moves(), 1);
}

TEST_F(Intents, ACrashWhileAPauseRestoresThePriorityDoesNotLoseTheRun) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n1").priority == -1; }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  h_.news = true;
  ASSERT_TRUE(h_.run_until([&] {
    return std::exchange(h_.news, false) &&
           h_.state(run).stages.at("move-n1").status == StageStatus::kUndoing;
  }));
  h_.crash();
  h_.boot();
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_EQ(h_.cluster.node("n1").priority, 0);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, ASkippedNodeIsLeftOutAndTheRunGoesOn) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").last_finished.has_value(); }));
  h_.cluster.node("n3").up = false;
  h_.cluster.node("n3").agent_up = false;
  ASSERT_TRUE(reaches(run, RunStatus::kWaiting));
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n3", "me", "disk is broken")).has_value());
  // Without n3 there is no margin for n1: the run waits on, and says so.
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).steps.at("lower-n1").status == StepStatus::kWaiting; }));
  EXPECT_THAT(h_.state(run).reason, HasSubstr("1 voter is up, 2 are needed"));
  h_.cluster.node("n3").up = true;
  h_.cluster.node("n3").agent_up = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n3"));
  EXPECT_FALSE(h_.cluster.node("n3").last_finished.has_value());
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n3").status, StepStatus::kSkipped);
}

TEST_F(Intents, ANodeThatIsSkippedWhileItWorksIsStopped) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n3", "me", "")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
  EXPECT_FALSE(h_.cluster.node("n3").running.has_value());
  EXPECT_FALSE(h_.cluster.node("n3").last_finished.has_value());
}

/// n3 scavenges, its agent dies, and a person leaves it out.
class SkippedNode : public Intents {
 protected:
  void skip_with_dead_agent() {
    run_ = start();
    ASSERT_TRUE(scavenges("n2"));
    id_ = h_.cluster.node("n2").running->id;
    h_.cluster.node("n2").agent_up = false;
    h_.cluster.node("n2").running->ends = Monotonic::max();
    pass(std::chrono::seconds(5));
    const auto skipped = h_.wait_for(h_.executor->skip_node(run_, "n2", "me", "its agent is gone"));
    ASSERT_TRUE(skipped.has_value()) << skipped.error().message;
    reported_ = *skipped;
  }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  std::string gates() { return h_.state(run_).steps.at("scavenge-n3").gates; }
  std::string run_;
  std::string id_;
  std::string reported_;
};

TEST_F(SkippedNode, HoldsTheOthersUpWhileItsScavengeIsSeenToRun) {
  ASSERT_NO_FATAL_FAILURE(skip_with_dead_agent());
  EXPECT_THAT(reported_, AllOf(HasSubstr("n2 still scavenges (" + id_ + ")"), HasSubstr("n3 waits"),
                               HasSubstr("--force")));
  pass(std::chrono::minutes(10));
  EXPECT_EQ(h_.cluster.node("n3").scavenge_starts, 0) << "n2 still scavenges";
  EXPECT_EQ(h_.state(run_).status, RunStatus::kWaiting);
  EXPECT_THAT(gates(), AllOf(HasSubstr("no-other-work"), HasSubstr(id_)));
  h_.cluster.stop_by_hand("n2");
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_EQ(h_.state(run_).status, RunStatus::kDone) << h_.state(run_).reason;
  EXPECT_EQ(h_.cluster.node("n3").finished.at(0), 1);
}

TEST_F(SkippedNode, NoLongerHoldsThemUpWhereAPersonSaysSo) {
  ASSERT_NO_FATAL_FAILURE(skip_with_dead_agent());
  pass(std::chrono::minutes(2));
  ASSERT_EQ(h_.cluster.node("n3").scavenge_starts, 0);
  const auto forced =
      h_.wait_for(h_.executor->skip_node(run_, "n2", "me", "it is only a replica", true));
  ASSERT_TRUE(forced.has_value());
  EXPECT_EQ(*forced, "");
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").scavenge_starts == 1; },
                           std::chrono::minutes(1)));
  EXPECT_TRUE(h_.cluster.node("n2").running.has_value());
}

TEST_F(SkippedNode, HoldsThemUpWhileItCannotBeSeen) {
  ASSERT_NO_FATAL_FAILURE(skip_with_dead_agent());
  h_.cluster.node("n2").up = false;
  pass(std::chrono::minutes(10));
  h_.cluster.node("n2").ghost = true;  // the quorum is not what n3 waits for
  pass(std::chrono::minutes(10));
  EXPECT_EQ(h_.cluster.node("n3").scavenge_starts, 0);
  EXPECT_THAT(gates(), AllOf(HasSubstr("skipped-node-unseen"), HasSubstr("scavenge-n2")));
  h_.crash();
  h_.boot();
  pass(std::chrono::minutes(2));
  EXPECT_EQ(h_.cluster.node("n3").scavenge_starts, 0) << "a restart knows it too";
  // Its server was started again: the scavenge ended with the old process.
  h_.cluster.restart("n2");
  h_.cluster.node("n2").up = true;
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").scavenge_starts == 1; },
                           std::chrono::minutes(3)));
  EXPECT_THAT(h_.events(run_), Contains("skipped-node-idle"));
}

TEST_F(SkippedNode, MayStillBeginWhatItWasAskedUntilItsPermitIsOver) {
  run_ = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.cluster.node("n2").agent_up = false;
  h_.cluster.stop_by_hand("n2");
  h_.run_until([] { return false; }, std::chrono::seconds(1));
  const auto begun = h_.time.monotonic();
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run_, "n2", "me", "")).has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").scavenge_starts == 1; },
                           std::chrono::minutes(3)));
  EXPECT_GE(h_.time.monotonic() - begun, h_.options.permit_valid_for);
}

TEST_F(Intents, ARefusalSaysWhatToDoNext) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  const auto text = [](const auto& outcome) {
    return outcome ? std::string("not refused") : outcome.error().message;
  };
  EXPECT_THAT(text(h_.wait_for(h_.executor->resume(run, "me"))), HasSubstr("verger run watch"));
  EXPECT_THAT(text(h_.wait_for(h_.executor->skip_node(run, "n9", "me", ""))),
              HasSubstr("n1, n2, n3"));
  const auto made =
      h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made && !*made) << "n2 scavenges";
  EXPECT_EQ(made->error().refusals.front().code, "run-active") << "it is the run's own work";
  ASSERT_TRUE(h_.executor->pause_cluster("prod", "me", "night", PauseMode::kNow, {}).has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_THAT(text(h_.wait_for(h_.executor->resume(run, "me"))),
              AllOf(HasSubstr("is paused: night"), HasSubstr("verger cluster resume prod")));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  EXPECT_THAT(text(h_.executor->pause(run, "me", "")), HasSubstr("verger run watch"));
  ASSERT_TRUE(reaches(run, RunStatus::kCancelled));
  EXPECT_THAT(text(h_.executor->pause(run, "me", "")), HasSubstr("verger run show"));
  EXPECT_THAT(text(h_.executor->cancel("nothing", "me", "")), HasSubstr("verger run list"));
}

TEST_F(Intents, SkippingAnUnknownNodeOrRunIsAnError) {
  const auto run = start();
  EXPECT_EQ(h_.wait_for(h_.executor->skip_node(run, "n9", "me", "")).error().code, Errc::kNotFound);
  EXPECT_EQ(h_.executor->pause("no-such-run", "me", "").error().code, Errc::kNotFound);
  const auto resumed = h_.wait_for(h_.executor->resume(run, "me"));
  EXPECT_EQ(resumed.error().code, Errc::kConflict);
}

TEST_F(Intents, APausedClusterStartsNothing) {
  ASSERT_TRUE(h_.registry->set_paused("prod", true, "audit week").has_value());
  auto made = h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made && *made);
  const auto run = h_.wait_for(h_.executor->apply((*made)->plan->hash, "me"));
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().error.code, Errc::kRefused);
  EXPECT_THAT(run.error().error.message, HasSubstr("audit week"));
}

TEST_F(Intents, StopLeavesTheRunToTheNextStart) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  bool stopped = false;
  net::co_spawn(*h_.context, h_.executor->stop(),
                [&stopped](std::exception_ptr) { stopped = true; });
  ASSERT_TRUE(h_.run_until([&stopped] { return stopped; }));
  EXPECT_TRUE(h_.cluster.node("n2").running.has_value()) << "what runs is left alone";
  h_.crash();
  h_.boot();
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  EXPECT_EQ(h_.cluster.node("n2").scavenge_starts, 1);
}

TEST_F(Intents, APassedDeadlineRaisesAnAlertAndThePersonDecides) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.gate_deadline_ms = 10'000;
  const auto run = start(policy);
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").last_finished.has_value(); }));
  h_.cluster.node("n3").writer = 0;  // it lags
  h_.cluster.node("n1").writer = std::int64_t{1} << 40U;
  h_.run_until([] { return false; }, std::chrono::seconds(40));
  ASSERT_EQ(h_.alerts(run).size(), 1U);
  EXPECT_THAT(h_.alerts(run)[0], HasSubstr("lags"));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
}

TEST_F(Intents, AControllerThatStartsAnewGoesOnCountingHowLongAGateIsClosed) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.gate_deadline_ms = 60'000;
  const auto run = start(policy);
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").last_finished.has_value(); }));
  h_.cluster.node("n3").writer = 0;  // it lags
  h_.cluster.node("n1").writer = std::int64_t{1} << 40U;
  for (int i = 0; i < 2; ++i) {
    h_.run_until([] { return false; }, std::chrono::seconds(40));
    if (i == 0) {
      EXPECT_TRUE(h_.alerts(run).empty());
      h_.crash();
      h_.boot();
    }
  }
  ASSERT_EQ(h_.alerts(run).size(), 1U) << "after 80 seconds in all";
  h_.crash();
  h_.boot();
  h_.run_until([] { return false; }, std::chrono::seconds(40));
  EXPECT_EQ(h_.alerts(run).size(), 1U) << "once, across restarts";
}

}  // namespace
}  // namespace verger::controller
