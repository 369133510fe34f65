#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/operations/operation_modules.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using test::Fate;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OnlineScavenge : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.scavenge_takes = std::chrono::seconds(20);
    h_.boot();
    h_.register_cluster();
  }
  test::FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  std::string start(planner::Strategy strategy = planner::Strategy::kOnline) {
    auto policy = ControllerHarness::quick_policy();
    scavenge_of(policy).strategy = strategy;
    return h_.start_scavenge(policy);
  }
  bool at_work_on(const std::string& name) {
    return h_.run_until([this, name] { return node(name).online.has_value(); });
  }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  json report_of(const std::string& run) {
    return find_operation_module("scavenge")->report(h_.state(run), json());
  }
  void expect_all_done(const std::string& run) {
    ASSERT_TRUE(h_.run_to_end(run)) << snapshot_of(h_.state(run)).state;
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    for (const auto& each : h_.cluster.nodes) {
      EXPECT_EQ(each.last_finished, 0) << each.name;
      EXPECT_EQ(each.finished.at(0), 1) << each.name;
      EXPECT_EQ(each.stops, 0) << each.name;
      EXPECT_EQ(each.priority, 0) << each.name;
    }
    EXPECT_EQ(h_.cluster.points.size(), 1U);
  }
  ControllerHarness h_;
};

TEST_F(OnlineScavenge, SwitchesNodeByNodeAndStopsNone) {
  std::vector<std::string> order;
  h_.cluster.acted = [&order](const test::FakeNode& to, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      order.push_back(to.name + ":" + json::parse(request.body).at("kind").get<std::string>());
    }
  };
  const auto run = start();
  expect_all_done(run);
  std::erase_if(order, [](const std::string& each) { return each.ends_with(":digest"); });
  EXPECT_THAT(order,
              ElementsAre("n2:scavenge_point", "n2:online_scavenge", "n3:online_scavenge",
                          "n1:set_priority", "n1:resign", "n1:set_priority", "n1:online_scavenge"));
  const auto report = report_of(run);
  ASSERT_EQ(report["nodes"].size(), 3U);
  for (const auto& each : report["nodes"]) {
    EXPECT_EQ(each["way"], "online");
    EXPECT_EQ(each["chunks_switched"], 4);
    EXPECT_EQ(each["space_saved"], 70'000);
    EXPECT_EQ(each["records_removed"], 700);
  }
}

TEST_F(OnlineScavenge, APauseStopsBetweenChunksAndResumingTakesTheSamePoint) {
  const auto run = start();
  ASSERT_TRUE(at_work_on("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(run).status == RunStatus::kPaused; }));
  EXPECT_EQ(node("n2").unfinished, 0);
  pass(std::chrono::minutes(5));
  EXPECT_EQ(node("n2").online_starts, 1);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  expect_all_done(run);
  EXPECT_EQ(node("n2").online_starts, 2);
}

TEST_F(OnlineScavenge, ACancelledRunLeavesWhatIsSwitched) {
  const auto run = start();
  ASSERT_TRUE(at_work_on("n3"));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_EQ(node("n3").unfinished, 0) << "it continues there the next time";
  EXPECT_EQ(node("n2").last_finished, 0);
  EXPECT_EQ(node("n1").online_starts, 0);
}

TEST_F(OnlineScavenge, AHeldLockCostsNoAttempt) {
  node("n2").online_fails.assign(8, "lock_held");  // more often than the step has attempts
  expect_all_done(start());
}

TEST_F(OnlineScavenge, ARefusalOfTheServerIsRepeatedAndThenFailsTheRunInItsWords) {
  node("n2").online_fails.assign(100, "refused");
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(24)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("as the test says"));
  EXPECT_EQ(node("n3").online_starts, 0);
}

TEST_F(OnlineScavenge, WhatIsNotSupportedIsNotRepeated) {
  node("n2").online_fails.assign(2, "not_supported");
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("use the strategy offline or rolling"));
  EXPECT_EQ(node("n2").online_fails.size(), 1U);
}

TEST_F(OnlineScavenge, NoSpaceIsTriedAgain) {
  node("n2").online_fails.assign(2, "no_space");
  expect_all_done(start());
}

TEST_F(OnlineScavenge, ALostReplyScavengesNoNodeTwice) {
  bool lost = false;
  h_.cluster.fate = [&](const test::FakeNode& to, const http::Request& request) {
    if (!lost && to.name == "n2" && request.body.find("online_scavenge") != std::string::npos) {
      lost = true;
      return std::optional(Fate::kReplyLost);
    }
    return std::optional<Fate>();
  };
  expect_all_done(start());
  EXPECT_EQ(node("n2").online_starts, 1);
}

TEST_F(OnlineScavenge, ARestartedControllerFindsItsOperation) {
  const auto run = start();
  ASSERT_TRUE(at_work_on("n3"));
  h_.crash();
  h_.boot();
  expect_all_done(run);
  EXPECT_EQ(node("n3").online_starts, 1);
}

TEST_F(OnlineScavenge, AServerThatGoesDownMeanwhileIsWaitedFor) {
  const auto run = start();
  ASSERT_TRUE(at_work_on("n2"));
  node("n2").up = false;
  pass(std::chrono::minutes(3));
  EXPECT_EQ(node("n3").online_starts, 0);
  node("n2").up = true;
  expect_all_done(run);
}

TEST_F(OnlineScavenge, TheThrottleOfTheRunReachesTheAgent) {
  const auto run = start();
  ASSERT_TRUE(at_work_on("n2"));
  const auto id = node("n2").online->operation;
  ASSERT_TRUE(h_.executor->throttle(run, "me", api::Throttle{.percent = 30}).has_value());
  EXPECT_TRUE(
      h_.run_until([&] { return node("n2").operations.at(id).status.throttle->percent == 30; }));
  expect_all_done(run);
}

TEST_F(OnlineScavenge, AutoTakesEachNodeItsOwnWay) {
  node("n3").online_problem = "its Unix socket is not there";
  const auto run = start(planner::Strategy::kAuto);
  ASSERT_TRUE(h_.run_to_end(run)) << snapshot_of(h_.state(run)).state;
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(node("n2").online_starts, 1);
  EXPECT_EQ(node("n3").stops, 1);
  EXPECT_EQ(node("n3").online_starts, 0);
  std::vector<std::string> ways;
  for (const auto& each : report_of(run)["nodes"]) {
    ways.push_back(each["way"].get<std::string>());
  }
  EXPECT_THAT(ways, ElementsAre("online", "online", "offline"));
  for (const auto& each : h_.cluster.nodes) {
    EXPECT_EQ(each.last_finished, 0) << each.name;
  }
}

}  // namespace
}  // namespace verger::controller
