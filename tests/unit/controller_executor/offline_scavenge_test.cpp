#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/executor/undo_report.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using test::Fate;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OfflineScavenge : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.scavenge_takes = std::chrono::seconds(20);
    h_.boot();
    h_.register_cluster();
  }
  test::FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  std::string start() {
    auto policy = ControllerHarness::quick_policy();
    scavenge_of(policy).strategy = planner::Strategy::kOffline;
    return h_.start_scavenge(policy);
  }
  bool stopped(const std::string& name) {
    return h_.run_until([this, name] { return node(name).offline.has_value(); });
  }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  void expect_all_done(const std::string& run) {
    ASSERT_TRUE(h_.run_to_end(run)) << snapshot_of(h_.state(run)).state;
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    for (const auto& each : h_.cluster.nodes) {
      EXPECT_TRUE(each.up) << each.name;
      EXPECT_EQ(each.last_finished, 0) << each.name;
      EXPECT_EQ(each.finished.at(0), 1) << each.name;
      EXPECT_EQ(each.priority, 0) << each.name;
    }
    EXPECT_EQ(h_.cluster.points.size(), 1U);
    EXPECT_EQ(h_.cluster.most_stopped, 1) << "never two nodes down";
    EXPECT_LE(h_.state(run).planned_moves(), 1);
  }
  ControllerHarness h_;
};

TEST_F(OfflineScavenge, StopsOneNodeAtATimeAndTheLeaderLast) {
  std::vector<std::string> order;
  h_.cluster.acted = [&order](const test::FakeNode& to, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      order.push_back(to.name + ":" + json::parse(request.body).at("kind").get<std::string>());
    }
  };
  const auto run = start();
  expect_all_done(run);
  std::erase_if(order, [](const std::string& each) { return each.ends_with(":digest"); });
  EXPECT_THAT(
      order, ElementsAre("n2:scavenge_point", "n2:offline_scavenge", "n3:offline_scavenge",
                         "n1:set_priority", "n1:resign", "n1:set_priority", "n1:offline_scavenge"));
  EXPECT_EQ(json::parse(h_.state(run).values.at("shared_point"))["number"], 0);
}

TEST_F(OfflineScavenge, ACancelledRunLeavesNoNodeStopped) {
  const auto run = start();
  ASSERT_TRUE(stopped("n3"));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  EXPECT_TRUE(node("n3").up);
  EXPECT_EQ(node("n3").unfinished, 0) << "it resumes there the next time";
  EXPECT_EQ(node("n1").stops, 0);
}

TEST_F(OfflineScavenge, APauseStartsTheNodeAndResumingContinuesWhereItStopped) {
  const auto run = start();
  ASSERT_TRUE(stopped("n2"));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(run).status == RunStatus::kPaused; }));
  EXPECT_TRUE(node("n2").up);
  pass(std::chrono::minutes(5));
  EXPECT_EQ(node("n2").stops, 1);
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  expect_all_done(run);
  EXPECT_EQ(node("n2").stops, 2);
}

TEST_F(OfflineScavenge, ANodeThatStaysDownIsNamedWithTheCommandThatStartsIt) {
  h_.cluster.scavenge_takes = std::chrono::hours(5);
  const auto run = start();
  ASSERT_TRUE(stopped("n2"));
  node("n2").agent_up = false;
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(1)));
  const auto report = undo_report(h_.state(run));
  const auto left = std::ranges::find(report, "n2", &NodeUndo::node);
  ASSERT_NE(left, report.end());
  EXPECT_EQ(left->outcome, UndoOutcome::kNotUndone);
  EXPECT_THAT(left->commands, ElementsAre("ssh 10.0.0.2 systemctl start eventstore@n2"));
  EXPECT_THAT(h_.alerts(run), ::testing::Contains(HasSubstr("systemctl start eventstore@n2")));
}

TEST_F(OfflineScavenge, ALostReplyStopsNoServerTwice) {
  bool lost = false;
  h_.cluster.fate = [&](const test::FakeNode& to, const http::Request& request) {
    if (!lost && to.name == "n2" && request.body.find("offline_scavenge") != std::string::npos) {
      lost = true;
      return std::optional(Fate::kReplyLost);
    }
    return std::optional<Fate>();
  };
  expect_all_done(start());
  EXPECT_EQ(node("n2").stops, 1);
}

TEST_F(OfflineScavenge, ARestartedControllerContinuesWithTheNodeThatIsStopped) {
  const auto run = start();
  ASSERT_TRUE(stopped("n3"));
  h_.crash();
  h_.boot();
  expect_all_done(run);
  EXPECT_EQ(node("n3").stops, 1);
}

TEST_F(OfflineScavenge, AnotherVoterDownHoldsTheNextStopBack) {
  const auto run = start();
  ASSERT_TRUE(stopped("n2"));
  node("n3").up = node("n3").agent_up = false;
  pass(std::chrono::minutes(5));
  EXPECT_TRUE(node("n2").up) << "its own turn ends";
  EXPECT_EQ(node("n3").stops, 0);
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  node("n3").up = node("n3").agent_up = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
}

}  // namespace
}  // namespace verger::controller
