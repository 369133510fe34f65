#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

// Projections and persistent subscriptions around a planned move of the leader.
namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ServerWorkCase : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster().projections = {{"$streams", "Running"},
                             {"p1", "Running"},
                             {"off", "Stopped"},
                             {"once", "Completed/Stopped/Writing results"}};
    cluster().subscriptions = {{"orders::g1", "Live"}, {"orders::g2", "Behind"}};
    h_.boot();
    h_.register_cluster();
    policy_.limits.server_work_back_ms = 60'000;
    policy_.limits.server_work_wait_ms = 600'000;
  }
  test::FakeCluster& cluster() { return h_.cluster; }
  /// When the leadership has left n1, what is given becomes so.
  void after_the_move(std::function<void()> change) {
    cluster().acted = [this, change = std::move(change)](const test::FakeNode&,
                                                         const http::Request&) {
      if (cluster().total_resigns() > 0) {
        change();
      }
    };
  }
  StepState step(const std::string& id) { return h_.state(run_).steps.at(id); }
  json result(const std::string& id) { return json(*step(id).result); }
  void start() { run_ = h_.start_scavenge(policy_); }
  bool waits_with(const std::string& text) {
    return h_.run_until([&] {
      const auto state = step("check-n1");
      return state.status == StepStatus::kWaiting && state.reason.contains(text);
    });
  }
  void expect_done() {
    ASSERT_TRUE(h_.run_to_end(run_));
    EXPECT_EQ(h_.state(run_).status, RunStatus::kDone) << h_.state(run_).reason;
  }

  ControllerHarness h_;
  planner::Policy policy_ = ControllerHarness::quick_policy();
  std::string run_;
};

TEST_F(ServerWorkCase, IsNotedBeforeTheMoveAndSeenAfterIt) {
  start();
  expect_done();
  EXPECT_EQ(result("note-n1")["projections"], 2) << "the stopped and the one-time one are not";
  EXPECT_EQ(result("note-n1")["subscriptions"], 2);
  EXPECT_EQ(result("check-n1")["back"], true);
  EXPECT_EQ(h_.state(run_).alerts.size(), 0U);
}

TEST_F(ServerWorkCase, WhatIsNotOfferedCostsNoTime) {
  start();
  expect_done();
  const auto with = h_.time.monotonic();
  ControllerHarness other;
  other.boot();
  other.register_cluster();
  const auto run = other.start_scavenge(policy_);
  ASSERT_TRUE(other.run_to_end(run));
  const auto state = other.state(run);
  EXPECT_THAT(state.steps.at("note-n1").result->dump(), HasSubstr("not offered"));
  EXPECT_THAT(state.steps.at("check-n1").result->dump(), HasSubstr("not offered"));
  EXPECT_LE(other.time.monotonic(), with);
}

TEST_F(ServerWorkCase, WhatDoesNotComeBackIsWaitedForWithTheCommandThatStartsIt) {
  after_the_move([this] { (*cluster().projections)["p1"] = "Faulted"; });
  start();
  ASSERT_TRUE(waits_with("not running again yet"));
  EXPECT_TRUE(h_.state(run_).alerts.empty()) << "it may still come";
  ASSERT_TRUE(waits_with("does not run since the leader moved: projection p1: Faulted"));
  EXPECT_THAT(step("check-n1").reason,
              AnyOf(HasSubstr("curl -X POST -d '' -u USER "
                              "'http://10.0.0.2:2113/projection/p1/command/enable'"),
                    HasSubstr("curl -X POST -d '' -u USER "
                              "'http://10.0.0.3:2113/projection/p1/command/enable'")));
  EXPECT_FALSE(h_.state(run_).alerts.empty());
  EXPECT_EQ(step("scavenge-n1").status, StepStatus::kPending) << "the run waits";
  EXPECT_TRUE(cluster().work_started.empty()) << "the policy does not say so";
  cluster().acted = nullptr;
  (*cluster().projections)["p1"] = "Running";
  expect_done();
  EXPECT_EQ(result("check-n1")["back"], true);
}

TEST_F(ServerWorkCase, TheRunContinuesWithoutWhatNeverComesBackAndReportsIt) {
  after_the_move([this] {
    cluster().projections->erase("p1");
    (*cluster().subscriptions)["orders::g2"] = "NotReady";
  });
  start();
  expect_done();
  const auto seen = result("check-n1");
  EXPECT_EQ(seen["back"], false);
  ASSERT_EQ(seen["not_back"].size(), 2U);
  EXPECT_EQ(seen["not_back"][0]["status"], "not listed");
  EXPECT_EQ(seen["not_back"][1]["name"], "orders::g2");
  EXPECT_THAT(seen["not_back"][1]["command"].get<std::string>(),
              HasSubstr("/subscriptions/restart'"));
  const auto alerts = h_.state(run_).alerts;
  const auto left = std::ranges::find_if(alerts, [](const RunAlert& alert) {
    return alert.step.empty() && alert.reason.contains("orders::g2: NotReady");
  });
  ASSERT_NE(left, alerts.end());
  EXPECT_FALSE(left->cleared_at.has_value()) << "the run is over, what it left is not";
  EXPECT_THAT(seen["report"][0].get<std::string>(), HasSubstr("projection p1: not listed"));
}

TEST_F(ServerWorkCase, VergerStartsItAgainWhereThePolicySaysSo) {
  policy_.limits.restart_server_work = true;
  after_the_move([this] {
    const auto was_started = [this](const char* what) {
      return std::ranges::find(cluster().work_started, what) != cluster().work_started.end();
    };
    (*cluster().projections)["p1"] = was_started("p1") ? "Running" : "Stopped";
    (*cluster().subscriptions)["orders::g1"] =
        was_started("all subscriptions") ? "Live" : "NotReady";
    (*cluster().subscriptions)["orders::g2"] = (*cluster().subscriptions)["orders::g1"];
  });
  start();
  expect_done();
  EXPECT_THAT(cluster().work_started, ElementsAre("p1", "all subscriptions")) << "each once";
  EXPECT_EQ(result("check-n1")["back"], true);
  EXPECT_EQ(result("check-n1")["report"].at(0),
            "projection p1: did not run after the leader moved (Stopped); Verger started it "
            "again");
}

TEST_F(ServerWorkCase, WhatDoesNotStartEitherIsLeftToAPerson) {
  policy_.limits.restart_server_work = true;
  after_the_move([this] { (*cluster().projections)["p1"] = "Faulted"; });
  start();
  expect_done();
  EXPECT_THAT(cluster().work_started, ElementsAre("p1")) << "once, not for ever";
  EXPECT_EQ(result("check-n1")["back"], false);
  EXPECT_FALSE(h_.state(run_).alerts.empty());
}

TEST_F(ServerWorkCase, AListThatMayNotBeReadHoldsNothingUp) {
  cluster().may_read_work = false;
  start();
  expect_done();
  EXPECT_THAT(step("note-n1").result->dump(), HasSubstr("lacks the role"));
  EXPECT_THAT(step("check-n1").result->dump(), HasSubstr("not_needed"));
}

TEST_F(ServerWorkCase, TheSubsystemIsStartedAgainWhereItAnswersNothingAtAll) {
  cluster().dress = [this](const test::FakeNode&, const http::Request& request,
                           http::Response& response) {
    if (cluster().total_resigns() > 0 && request.target.starts_with("/projections/all")) {
      response = {};
      response.status = 408;
    }
  };
  start();
  ASSERT_TRUE(waits_with("/projections/restart"));
  EXPECT_THAT(step("check-n1").reason, HasSubstr("projections: "));
  expect_done();
}

TEST_F(ServerWorkCase, ThePolicySwitchesItOff) {
  policy_.limits.check_server_work = false;
  start();
  expect_done();
  EXPECT_FALSE(h_.state(run_).steps.contains("note-n1"));
  EXPECT_FALSE(h_.state(run_).steps.contains("check-n1"));
}

}  // namespace
}  // namespace verger::controller
