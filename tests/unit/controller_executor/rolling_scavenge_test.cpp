#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using test::Fate;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RollingScavenge : public ::testing::Test {
 protected:
  void prepare(int voters = 3, bool agents = true) {
    harness_ = std::make_unique<ControllerHarness>(voters, agents);
    harness_->boot();
    harness_->register_cluster();
  }
  ControllerHarness& h() { return *harness_; }
  test::FakeCluster& cluster() { return harness_->cluster; }
  /// Order in which nodes finished the point.
  std::string run(const planner::Policy& policy = ControllerHarness::quick_policy()) {
    const auto id = h().start_scavenge(policy);
    EXPECT_TRUE(h().run_to_end(id)) << snapshot_of(h().state(id)).state;
    return id;
  }
  void expect_all_done(const std::string& id, std::int64_t point) {
    const auto state = h().state(id);
    EXPECT_EQ(state.status, RunStatus::kDone) << state.reason;
    for (const auto& node : cluster().nodes) {
      EXPECT_EQ(node.last_finished, point) << node.name;
      EXPECT_EQ(node.finished.at(point), 1) << node.name;
      EXPECT_EQ(node.priority, 0) << node.name;
    }
    EXPECT_LE(state.planned_moves(), 1);
  }
  std::unique_ptr<ControllerHarness> harness_;
};

TEST_F(RollingScavenge, TakesAllNodesToOnePointAndTheLeaderLast) {
  prepare();
  std::vector<std::string> order;
  cluster().acted = [&order](const test::FakeNode& node, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      order.push_back(node.name + ":" + json::parse(request.body).at("kind").get<std::string>());
    }
  };
  const auto id = run();
  expect_all_done(id, 0);
  std::erase_if(order, [](const std::string& each) { return each.ends_with(":digest"); });
  EXPECT_THAT(order, ElementsAre("n2:scavenge", "n3:scavenge", "n1:set_priority", "n1:resign",
                                 "n1:set_priority", "n1:scavenge"));
  const auto state = h().state(id);
  EXPECT_EQ(state.planned_moves(), 1);
  EXPECT_EQ(cluster().points.size(), 1U);
  const auto compared = json(*state.steps.at("compare-digests").result);
  EXPECT_EQ(compared["equal"], true);
  EXPECT_EQ(compared["same_point"], true);
  EXPECT_EQ(json::parse(state.values.at("shared_point"))["number"], 0);
}

TEST_F(RollingScavenge, SaysWhichChunkDiffersAndDoesNotCallItCorrupt) {
  prepare();
  cluster().node("n3").digest = "bb";
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.status, RunStatus::kDone);
  const auto compared = json(*state.steps.at("compare-digests").result);
  EXPECT_EQ(compared["equal"], false);
  EXPECT_EQ(compared["readable_equal"], true);
  EXPECT_EQ(compared["first_difference"]["chunk"], 1);
  EXPECT_EQ(compared["first_difference"]["nodes"]["n3"], "bb");
}

TEST_F(RollingScavenge, NodesThatReadDifferentlyEndARunThatIsNoSuccess) {
  prepare();
  cluster().node("n3").digest = "bb";
  cluster().node("n3").readable_digest = "ss";
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.status, RunStatus::kDoneWithDifferences);
  EXPECT_EQ(to_string(state.status), "done-with-differences");
  EXPECT_TRUE(has_ended(state.status));
  EXPECT_THAT(state.reason, HasSubstr("differs between the nodes: n1, n2 against n3"));
  EXPECT_THAT(h().alerts(id), ElementsAre(HasSubstr("n1, n2 against n3")));
  EXPECT_EQ(state.open_alerts(), 1U) << "the run has ended, the difference is still there";
  const auto compared = json(*state.steps.at("compare-digests").result);
  EXPECT_EQ(compared["readable_equal"], false);
  // So it is after a restart, from the journal.
  h().crash();
  h().boot();
  EXPECT_EQ(h().state(id).status, RunStatus::kDoneWithDifferences);
}

TEST_F(RollingScavenge, DataThatReadsDifferentlyAfterwardsIsADifference) {
  prepare();
  cluster().acted = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n3" && request.target == "/agent/v1/operations") {
      for (auto& each : cluster().nodes) {
        each.readable_digest = "ss";  // its digest was recorded before
      }
    }
  };
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.status, RunStatus::kDoneWithDifferences) << state.reason;
  EXPECT_THAT(state.reason, HasSubstr("is not what n1 held before it was scavenged"));
}

TEST_F(RollingScavenge, NodesThatEndAtDifferentPointsEndARunThatIsNoSuccess) {
  prepare();
  cluster().acted = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n1" && request.target == "/agent/v1/operations" &&
        json::parse(request.body).at("kind") == "scavenge") {
      // An operator scavenges another node to another point meanwhile.
      cluster().points.push_back(9'000);
      cluster().node("n2").last_finished = 1;
    }
  };
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.status, RunStatus::kDoneWithDifferences) << state.reason;
  EXPECT_THAT(state.reason, HasSubstr("ended at different scavenge points: n2 at 1; n1, n3 at 0"));
  EXPECT_THAT(h().events(id), Contains("alert"));
}

TEST_F(RollingScavenge, ANodeThatWasScavengedBeyondThePointMayReadDifferently) {
  prepare();
  cluster().acted = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n1" && request.target == "/agent/v1/operations" &&
        json::parse(request.body).at("kind") == "scavenge") {
      cluster().points.push_back(9'000);
      auto& beyond = cluster().node("n2");
      beyond.last_finished = 1;
      beyond.digest = "bb";
      beyond.readable_digest = "ss";  // less, since more was deleted until then
    }
  };
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.reason, "the nodes ended at different scavenge points: n2 at 1; n1, n3 at 0");
  const auto compared = json(*state.steps.at("compare-digests").result);
  EXPECT_EQ(compared["readable_equal"], nullptr);
  EXPECT_EQ(compared["readable_unchanged"], true);
}

TEST_F(RollingScavenge, FinishesOlderPointsFirst) {
  prepare();
  cluster().points = {1'000, 2'000};
  for (auto& node : cluster().nodes) {
    node.last_finished = 1;
  }
  cluster().node("n3").last_finished = 0;
  cluster().node("n3").unfinished = 1;
  const auto id = run();
  expect_all_done(id, 2);
  EXPECT_EQ(cluster().node("n3").finished.at(1), 1);
  EXPECT_EQ(h().state(id).steps.at("finish-n3").status, StepStatus::kDone);
}

TEST_F(RollingScavenge, WorksThroughTheNodeInterfaceAloneAndClaimsNoPoint) {
  prepare(3, false);
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.status, RunStatus::kDone) << state.reason;
  for (const auto& node : cluster().nodes) {
    EXPECT_EQ(node.last_finished, 0) << node.name;
    EXPECT_EQ(node.finished.at(0), 1) << node.name;
    EXPECT_EQ(node.priority, 0);
  }
  EXPECT_FALSE(state.steps.contains("compare-digests"));
  EXPECT_EQ(json::parse(state.values.at("shared_point"))["number"], -1);
  EXPECT_EQ(state.planned_moves(), 1);
}

TEST_F(RollingScavenge, ASingleNodeIsScavengedWhileItLeads) {
  prepare(1);
  const auto id = run();
  expect_all_done(id, 0);
  EXPECT_EQ(cluster().total_resigns(), 0);
}

TEST_F(RollingScavenge, AsksAgainWhenTheResignedNodeWinsButMovesOnlyOnce) {
  prepare();
  cluster().resigner_wins = 2;
  const auto id = run();
  expect_all_done(id, 0);
  EXPECT_EQ(cluster().node("n1").resigns, 3);
  EXPECT_EQ(h().state(id).planned_moves(), 1);
}

TEST_F(RollingScavenge, StopsAfterThreeAttemptsAndRestoresThePriority) {
  prepare();
  cluster().resigner_wins = 10;
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.status, RunStatus::kFailed);
  EXPECT_THAT(state.reason, HasSubstr("3 attempts"));
  EXPECT_EQ(cluster().node("n1").resigns, 3);
  EXPECT_EQ(cluster().node("n1").priority, 0);
  EXPECT_FALSE(cluster().node("n1").last_finished.has_value());
  EXPECT_EQ(state.steps.at("lower-n1").status, StepStatus::kUndone);
}

TEST_F(RollingScavenge, DoesNotMoveALeadershipThatHasLeftByItself) {
  prepare();
  cluster().acted = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n3" && request.target == "/agent/v1/operations" &&
        cluster().leader()->name == "n1") {
      cluster().elect("n2");  // n2 is done by then
    }
  };
  const auto id = run();
  expect_all_done(id, 0);
  EXPECT_EQ(cluster().total_resigns(), 0);
  const auto state = h().state(id);
  EXPECT_EQ(state.planned_moves(), 0);
  ASSERT_EQ(state.moves.size(), 1U);
  EXPECT_FALSE(state.moves[0].planned);
}

TEST_F(RollingScavenge, PutsAFollowerOffThatComesToLead) {
  prepare();
  cluster().acted = [this](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n2" && request.target == "/agent/v1/operations" &&
        cluster().leader()->name == "n1") {
      cluster().elect("n3");  // before its turn
    }
  };
  const auto id = run();
  expect_all_done(id, 0);
  EXPECT_EQ(cluster().node("n3").resigns, 1);
  EXPECT_EQ(cluster().node("n1").resigns, 0);
  EXPECT_EQ(h().state(id).planned_moves(), 1);
  EXPECT_THAT(h().events(id), Contains("stage-put-off"));
}

TEST_F(RollingScavenge, TheNextNodeMakesThePointWhereTheOneThatWasToLeads) {
  for (const bool agents : {true, false}) {
    prepare(3, agents);
    const auto id = h().start_scavenge(ControllerHarness::quick_policy());
    cluster().elect("n2");
    ASSERT_TRUE(h().run_to_end(id));
    expect_all_done(id, 0);
    EXPECT_EQ(cluster().points.size(), 1U);
    EXPECT_EQ(cluster().node("n2").resigns, 1);
    EXPECT_EQ(cluster().node("n1").resigns, 0);
    EXPECT_THAT(h().events(id), Contains("stage-put-off"));
  }
}

TEST_F(RollingScavenge, TheNextNodeMakesThePointWhereTheOneThatWasToIsLeftOut) {
  prepare();
  cluster().node("n2").closed_at_last_look = 1'000;
  const auto id = h().start_scavenge(ControllerHarness::quick_policy());
  h().run_until([] { return false; }, std::chrono::seconds(5));
  ASSERT_TRUE(h().wait_for(h().executor->skip_node(id, "n2", "me", "it is broken")).has_value());
  ASSERT_TRUE(h().run_to_end(id));
  EXPECT_EQ(h().state(id).status, RunStatus::kDone) << h().state(id).reason;
  EXPECT_EQ(cluster().points.size(), 1U);
  EXPECT_EQ(cluster().node("n1").last_finished, 0);
  EXPECT_EQ(cluster().node("n3").last_finished, 0);
}

TEST_F(RollingScavenge, LooksForThePointAfterALostReply) {
  prepare();
  int lost = 0;
  cluster().fate = [&lost](const test::FakeNode& node,
                           const http::Request& request) -> std::optional<Fate> {
    if (node.name == "n2" && request.target == "/agent/v1/operations" && lost == 0) {
      ++lost;
      return Fate::kReplyLost;
    }
    return std::nullopt;
  };
  const auto id = run();
  expect_all_done(id, 0);
  EXPECT_EQ(lost, 1);
  EXPECT_EQ(cluster().points.size(), 1U);
  auto events = h().events(id, "scavenge-n2");
  std::erase(events, "step-waiting");  // until the leader has settled
  EXPECT_THAT(events, ElementsAre("step-intended", "step-acted", "step-done"));
}

TEST_F(RollingScavenge, SendsTheSameOperationAgainWhenItNeverArrived) {
  prepare();
  int lost = 0;
  cluster().fate = [&lost](const test::FakeNode&,
                           const http::Request& request) -> std::optional<Fate> {
    if (request.target == "/agent/v1/operations" && lost < 3) {
      ++lost;
      return Fate::kLost;
    }
    return std::nullopt;
  };
  const auto id = run();
  expect_all_done(id, 0);
  EXPECT_EQ(std::ranges::count(cluster().node("n2").operations, "scavenge",
                               [](const auto& each) { return each.second.status.kind; }),
            1);
  EXPECT_EQ(cluster().node("n2").scavenge_starts, 1);
}

TEST_F(RollingScavenge, LostRepliesWithoutAgentsMakeNoSecondPointAndNoSecondMove) {
  prepare(3, false);
  int turn = 0;
  cluster().fate = [&turn](const test::FakeNode&, const http::Request&) -> std::optional<Fate> {
    return ++turn % 2 == 0 ? Fate::kReplyLost : Fate::kArrives;
  };
  const auto id = run();
  const auto state = h().state(id);
  EXPECT_EQ(state.status, RunStatus::kDone) << state.reason;
  EXPECT_EQ(cluster().points.size(), 1U);
  for (const auto& node : cluster().nodes) {
    EXPECT_EQ(node.finished.at(0), 1) << node.name;
  }
  EXPECT_EQ(cluster().total_resigns(), 1);
}

TEST_F(RollingScavenge, ContinuesAfterANodeRestartedInTheMiddle) {
  prepare();
  bool restarted = false;
  const auto id = h().start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h().run_until([&] {
    if (cluster().node("n3").running && !restarted) {
      restarted = true;
      cluster().restart("n3");
    }
    return has_ended(h().state(id).status);
  }));
  EXPECT_TRUE(restarted);
  expect_all_done(id, 0);
  EXPECT_EQ(cluster().node("n3").scavenge_starts, 2);
}

TEST_F(RollingScavenge, WaitsWithAReasonForANodeThatIsDownAndContinuesWhenItIsBack) {
  prepare();
  const auto id = h().start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h().run_until([&] { return cluster().node("n2").last_finished.has_value(); }));
  cluster().node("n3").up = false;
  ASSERT_TRUE(h().run_until([&] { return h().state(id).status == RunStatus::kWaiting; }));
  EXPECT_THAT(h().state(id).reason, HasSubstr("n3"));
  h().run_until([] { return false; }, std::chrono::minutes(1));
  EXPECT_EQ(h().state(id).status, RunStatus::kWaiting);
  cluster().node("n3").up = true;
  ASSERT_TRUE(h().run_to_end(id));
  expect_all_done(id, 0);
}

TEST_F(RollingScavenge, AnAgentThatIsGoneWhileItsNodeLivesIsAGate) {
  prepare();
  const auto id = h().start_scavenge(ControllerHarness::quick_policy());
  // Its own work on n1, the digest that is recorded, is done: now n3 waits for another's agent.
  ASSERT_TRUE(h().run_until(
      [&] { return h().state(id).steps.at("record-n1").status == StepStatus::kDone; }));
  cluster().node("n1").agent_up = false;
  ASSERT_TRUE(h().run_until(
      [&] { return h().state(id).steps.at("scavenge-n3").status == StepStatus::kWaiting; }));
  EXPECT_THAT(h().state(id).reason, HasSubstr("n1"));
  EXPECT_THAT(h().state(id).steps.at("scavenge-n3").gates, HasSubstr("agents-answer"));
  h().run_until([] { return false; }, std::chrono::minutes(1));
  EXPECT_FALSE(cluster().node("n3").running.has_value());
  cluster().node("n1").agent_up = true;
  ASSERT_TRUE(h().run_to_end(id));
  expect_all_done(id, 0);
}

TEST_F(RollingScavenge, WaitsWhileAForeignScavengeRuns) {
  prepare();
  const auto id = h().start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h().run_until([&] { return cluster().node("n2").running.has_value(); }));
  cluster().node("n3").running =
      test::FakeScavenge{"foreign", -1, h().time.monotonic() + std::chrono::seconds(20)};
  ASSERT_TRUE(h().run_until(
      [&] { return h().state(id).steps.at("scavenge-n3").status == StepStatus::kWaiting; }));
  EXPECT_THAT(h().state(id).steps.at("scavenge-n3").reason, HasSubstr("foreign"));
  ASSERT_TRUE(h().run_to_end(id));
  expect_all_done(id, 0);
}

TEST_F(RollingScavenge, StartsAgainWhenAnotherClientStoppedItAndReportsIt) {
  prepare();
  const auto id = h().start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h().run_until([&] { return cluster().node("n3").running.has_value(); }));
  http::Request stop;
  stop.method = "DELETE";
  stop.target = "/admin/scavenge/" + cluster().node("n3").running->id;
  static_cast<void>(h().wait_for(cluster().send(*http::parse_endpoint("http://10.0.0.3:2113"), stop,
                                                std::chrono::seconds(1))));
  ASSERT_TRUE(h().run_to_end(id));
  expect_all_done(id, 0);
  EXPECT_THAT(h().events(id, "scavenge-n3"), Contains("step-retry"));
}

TEST_F(RollingScavenge, RefusesAStalePlanAndShowsTheDifference) {
  prepare();
  auto made = h().wait_for(h().executor->make_plan("prod", ControllerHarness::quick_policy(), "a"));
  ASSERT_TRUE(made && *made);
  cluster().elect("n2");
  cluster().restart("n3");
  auto run = h().wait_for(h().executor->apply((*made)->plan->hash, "a"));
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().error.code, Errc::kConflict);
  EXPECT_THAT(run.error().differences, Contains(HasSubstr("n2: role was follower, is leader")));
  EXPECT_THAT(run.error().differences, Contains(HasSubstr("n3: instance")));
}

TEST_F(RollingScavenge, OneRunPerCluster) {
  prepare();
  const auto id = h().start_scavenge(ControllerHarness::quick_policy());
  auto again = h().wait_for(h().executor->apply(h().state(id).plan->hash, "b"));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().error.code, Errc::kRefused);
}

TEST_F(RollingScavenge, DoesNothingToANodeOfAnotherDatabase) {
  prepare();
  auto learned =
      h().wait_for(h().executor->make_plan("prod", ControllerHarness::quick_policy(), "a"));
  ASSERT_TRUE(learned && *learned);
  cluster().node("n3").database = "db-2";
  auto refused =
      h().wait_for(h().executor->make_plan("prod", ControllerHarness::quick_policy(), "a"));
  ASSERT_TRUE(refused.has_value());
  ASSERT_FALSE(refused->has_value());
  EXPECT_EQ(refused->error().refusals.at(0).code, "wrong-node");
  EXPECT_EQ(refused->error().refusals.at(0).node, "n3");
}

}  // namespace
}  // namespace verger::controller
