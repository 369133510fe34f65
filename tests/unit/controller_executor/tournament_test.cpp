#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

// What the known peers get wrong, each case by its name. In each: what is claimed is what was so.
// The others of the list: scheduler_test.cpp and due_test.cpp (schedules), pause_matrix_test.cpp,
// crash_test.cpp (kills, two controllers, journal disk full), daylight_saving_test.cpp.
namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using test::Fate;
using ::testing::Contains;
using ::testing::HasSubstr;

class TournamentCase : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster().scavenge_takes = std::chrono::seconds(20);
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.boot();
    h_.register_cluster();
  }
  test::FakeCluster& cluster() { return h_.cluster; }
  test::FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  std::string start() { return h_.start_scavenge(ControllerHarness::quick_policy()); }
  bool scavenges(const std::string& name) {
    return h_.run_until([this, name] { return node(name).running.has_value(); });
  }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  const StepState& step(const std::string& run, const std::string& id) {
    state_ = h_.state(run);
    return state_.steps.at(id);
  }
  void down(const std::string& name) { node(name).up = node(name).agent_up = false; }
  void up(const std::string& name) { node(name).up = node(name).agent_up = true; }

  /// The run says done, and it is: each node finished the point once, nothing is left behind.
  void expect_done_and_true(const std::string& run, std::int64_t point = 0) {
    ASSERT_TRUE(h_.run_to_end(run)) << snapshot_of(h_.state(run)).state;
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    for (const auto& each : cluster().nodes) {
      EXPECT_EQ(each.last_finished, point) << each.name;
      EXPECT_EQ(each.finished.contains(point) ? each.finished.at(point) : 0, 1) << each.name;
      EXPECT_EQ(each.priority, 0) << each.name;
    }
    EXPECT_LE(h_.state(run).planned_moves(), 1);
  }

  ControllerHarness h_;
  RunState state_;
};

TEST_F(TournamentCase, DeadNodeStillInGossip) {
  node("n3").ghost = true;
  down("n3");
  auto made = h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made.has_value());
  ASSERT_FALSE(made->has_value()) << "gossip calls it alive, but it does not speak for itself";
  EXPECT_THAT(made->error().refusals, Contains(::testing::Field(&planner::Refusal::node, "n3")));
}

TEST_F(TournamentCase, ScavengeEndsErrored) {
  node("n3").next_ends = {"Errored", "Errored"};
  const auto run = start();
  ASSERT_TRUE(h_.run_until([this] { return node("n3").next_ends.size() == 1; }));
  EXPECT_NE(step(run, "scavenge-n3").status, StepStatus::kDone) << "errored is never done";
  expect_done_and_true(run);
  EXPECT_EQ(step(run, "scavenge-n3").attempt, 3);
  const auto outcomes = json::parse(step(run, "scavenge-n3").outcomes);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0]["outcome"], "errored");
  EXPECT_EQ(outcomes[0]["attempt"], 1);
}

TEST_F(TournamentCase, ScavengeEndsErroredUntilTheBudgetIsUsedUp) {
  node("n3").next_ends = std::vector<std::string>(20, "Errored");
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("errored"));
  EXPECT_FALSE(node("n3").last_finished.has_value());
}

TEST_F(TournamentCase, SomeoneStopsTheScavengeByHand) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  cluster().stop_by_hand("n3");
  ASSERT_TRUE(h_.run_until([&] { return step(run, "scavenge-n3").attempt == 2; }));
  EXPECT_THAT(h_.events(run, "scavenge-n3"), Contains("step-retry"));
  EXPECT_THAT(step(run, "scavenge-n3").outcomes, HasSubstr("stopped-by-someone"));
  expect_done_and_true(run);
}

TEST_F(TournamentCase, SomeoneElsesScavengeIsRunning) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  cluster().scavenge_takes = std::chrono::seconds(60);
  const auto foreign = cluster().start_by_hand("n3");
  ASSERT_TRUE(
      h_.run_until([&] { return step(run, "scavenge-n3").status == StepStatus::kWaiting; }));
  EXPECT_THAT(step(run, "scavenge-n3").reason, HasSubstr(foreign));
  expect_done_and_true(run);
}

TEST_F(TournamentCase, SomeoneElsesScavengeIsRunningAndIsAdopted) {
  auto policy = ControllerHarness::quick_policy();
  scavenge_of(policy).foreign = planner::ForeignRule::kAdopt;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(scavenges("n2"));
  cluster().scavenge_takes = std::chrono::seconds(60);
  const auto foreign = cluster().start_by_hand("n3");
  expect_done_and_true(run);
  EXPECT_EQ(node("n3").scavenge_starts, 1) << "the one by hand";
  EXPECT_EQ(json(*step(run, "scavenge-n3").result)["adopted"], foreign);
}

TEST_F(TournamentCase, AnAdoptedScavengeThatIsStoppedByHandIsFollowedByOurs) {
  auto policy = ControllerHarness::quick_policy();
  scavenge_of(policy).foreign = planner::ForeignRule::kAdopt;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_until([this] { return node("n2").last_finished.has_value(); }));
  cluster().start_by_hand("n3");
  ASSERT_TRUE(h_.run_until([&] { return step(run, "scavenge-n3").attempt == 1; }));
  pass(std::chrono::seconds(1));
  cluster().stop_by_hand("n3");
  expect_done_and_true(run);
  EXPECT_THAT(step(run, "scavenge-n3").outcomes, HasSubstr("adopted-ended"));
}

TEST_F(TournamentCase, NodeRestartsMidScavenge) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  pass(std::chrono::seconds(3));
  cluster().restart("n3");
  expect_done_and_true(run);
}

TEST_F(TournamentCase, NodeReplacedMidCycle) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  node("n3").database = "another";
  node("n3").instance = "stranger";
  pass(std::chrono::minutes(5));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_EQ(node("n3").scavenge_starts, 0) << "nothing is done to it";
  EXPECT_THAT(h_.state(run).reason, HasSubstr("database"));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
}

TEST_F(TournamentCase, NodeDownForDaysMidScavenge) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  pass(std::chrono::seconds(3));
  down("n3");
  h_.options.poll_interval = std::chrono::minutes(30);
  h_.crash();
  h_.boot();
  pass(std::chrono::hours(72));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_EQ(step(run, "scavenge-n3").status, StepStatus::kUnknown);
  EXPECT_FALSE(step(run, "scavenge-n3").reason.empty());
  EXPECT_EQ(cluster().total_resigns(), 0);
  up("n3");
  cluster().restart("n3");
  h_.options.poll_interval = std::chrono::milliseconds(500);
  h_.crash();
  h_.boot();
  expect_done_and_true(run);
}

TEST_F(TournamentCase, ResignedLeaderWinsAgain) {
  cluster().resigner_wins = 1;
  const auto run = start();
  expect_done_and_true(run);
  EXPECT_EQ(h_.state(run).planned_moves(), 1);
}

TEST_F(TournamentCase, TheLeaderCrashesInResigningAndItsAgentStartsIt) {
  cluster().acted = [this](const test::FakeNode& acting, const http::Request&) {
    if (acting.resigns > 0 && node("n1").instance == "instance-1-1") {
      node("n1").up = false;
    }
  };
  const auto run = start();
  expect_done_and_true(run);
  EXPECT_EQ(step(run, "start-n1").status, StepStatus::kDone);
  EXPECT_NE(node("n1").instance, "instance-1-1");
  EXPECT_EQ(cluster().total_resigns(), 1);
  EXPECT_TRUE(h_.alerts(run).empty());
}

TEST_F(TournamentCase, TheLeaderCrashesInResigningAndNothingStartsIt) {
  node("n1").service_control = false;
  cluster().acted = [this](const test::FakeNode& acting, const http::Request&) {
    if (acting.resigns > 0) {
      node("n1").up = false;
    }
  };
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return !h_.alerts(run).empty(); }));
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("n1 has not answered for 2 minutes")));
  EXPECT_FALSE(has_ended(h_.state(run).status));
  cluster().acted = {};
  cluster().restart("n1");
  node("n1").up = true;
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_and_true(run);
  EXPECT_EQ(cluster().total_resigns(), 1);
}

TEST_F(TournamentCase, NoNewLeaderWithinTheDeadline) {
  cluster().election_takes = std::chrono::minutes(30);
  auto policy = ControllerHarness::quick_policy();
  policy.limits.move_deadline_ms = 60'000;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(2)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("deadline"));
  EXPECT_EQ(node("n1").priority, 0) << "restored all the same";
  EXPECT_EQ(cluster().total_resigns(), 1);
}

TEST_F(TournamentCase, AClockSetForwardWhileTheControllerWasDownEndsNoMove) {
  cluster().election_takes = std::chrono::seconds(20);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([this] { return cluster().total_resigns() == 1; }));
  h_.crash();
  h_.time.jump(std::chrono::minutes(30));
  h_.boot();
  expect_done_and_true(run);
}

TEST_F(TournamentCase, ReplyLostAfterAScavengePointWasWritten) {
  bool lost = false;
  cluster().fate = [&](const test::FakeNode& to, const http::Request& request) {
    if (!lost && to.name == "n2" && request.target == "/agent/v1/operations") {
      lost = true;
      return std::optional(Fate::kReplyLost);
    }
    return std::optional<Fate>();
  };
  const auto run = start();
  expect_done_and_true(run);
  EXPECT_EQ(cluster().points.size(), 1U);
  EXPECT_EQ(node("n2").scavenge_starts, 1);
}

TEST_F(TournamentCase, SecondNodeMissesThePoint) {
  node("n3").visible_points = 0;
  const auto run = start();
  ASSERT_TRUE(h_.run_until([this] { return node("n2").last_finished.has_value(); }));
  pass(std::chrono::minutes(2));
  EXPECT_EQ(node("n3").scavenge_starts, 0) << "a start without the point would do nothing, or harm";
  EXPECT_THAT(step(run, "scavenge-n3").reason, HasSubstr("has not reached it yet"));
  node("n3").visible_points.reset();
  expect_done_and_true(run);
}

TEST_F(TournamentCase, DiskFillsDuringExecution) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  node("n3").disk_free = 1'000;
  node("n3").next_ends = {"Errored"};
  pass(std::chrono::minutes(2));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("1000 B free"));
  EXPECT_EQ(node("n3").scavenge_starts, 1) << "it is not tried again into a full disk";
  node("n3").disk_free = std::int64_t{1} << 39U;
  expect_done_and_true(run);
}

TEST_F(TournamentCase, ClockJumps) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.time.jump(std::chrono::hours(24 * 30));
  ASSERT_TRUE(scavenges("n3"));
  h_.time.jump(-std::chrono::hours(24 * 60));
  expect_done_and_true(run);
  EXPECT_TRUE(h_.alerts(run).empty()) << "deadlines go by the monotonic clock";
}

TEST_F(TournamentCase, AgentLiesAboutItsCluster) {
  ASSERT_TRUE(h_.registry->set_identity("prod", "db-1").has_value());
  node("n2").database = "somebody else's";
  auto made = h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made.has_value());
  ASSERT_FALSE(made->has_value());
  EXPECT_THAT(made->error().refusals.front().code, HasSubstr("wrong"));
}

TEST_F(TournamentCase, AgentLiesThatItIsDoneWhileTheNodeScavenges) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  for (auto& [id, operation] : node("n2").operations) {
    operation.status.state = api::OperationState::kDone;
  }
  pass(std::chrono::seconds(5));
  EXPECT_EQ(step(run, "scavenge-n2").status, StepStatus::kActing) << "the node shows otherwise";
  EXPECT_EQ(node("n3").scavenge_starts, 0);
  expect_done_and_true(run);
}

}  // namespace
}  // namespace verger::controller
