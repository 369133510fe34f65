// Three voters become five, and five three: in an order in which no two leaders are possible, or
// all is as before.
#include <algorithm>

#include "controller/operations/restore/restore_support.h"
#include "tests/unit/controller_operations/resize_run.h"

namespace verger::controller {
namespace {

using test::FakeNode;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Growing : public test::ResizeRun {};
class Shrinking : public test::ResizeRun {
 protected:
  Shrinking() : ResizeRun(5) {}
};

TEST_F(Growing, ThreeVotersBecomeFive) {
  begin();
  const auto run = start(to_five());
  expect_grown(run);
  EXPECT_THAT(h_.alerts(run), IsEmpty());
  EXPECT_EQ(node("n4").files.restores, 1);
  EXPECT_EQ(node("n5").files.restores, 1);
  for (const auto* name : {"n1", "n2", "n3"}) {
    EXPECT_EQ(size(name).changes, 1) << name;
    EXPECT_THAT(size(name).seeds, ElementsAre("10.0.0.1:2113", "10.0.0.4:2113", "10.0.0.5:2113"));
  }
}

TEST_F(Growing, ServersThatDoNotReplicateBetweenSizesPauseAndContinue) {
  h_.cluster.sizes_differ_apart = true;
  begin();
  expect_grown(start(to_five()));
}

TEST_F(Growing, TheLeaderComesLastAndNewVotersAfterAllOthers) {
  begin();
  std::vector<std::string> order;
  h_.cluster.acted = [&](const FakeNode& to, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      const auto kind = nlohmann::json::parse(request.body).at("kind").get<std::string>();
      if (kind == "server_size" || kind == "start_service") {
        order.push_back(kind + " " + to.name);
      }
    }
  };
  expect_grown(start(to_five()));
  EXPECT_THAT(order, ElementsAre("server_size n2", "server_size n3", "server_size n1",
                                 "start_service n4", "start_service n5"));
}

TEST_F(Growing, NoNewVoterStartsBeforeAllHaveWhatIsCommitted) {
  begin();
  const auto run = start(to_five());
  ASSERT_TRUE(h_.run_until([this] { return size("n1").restarting.has_value(); }));
  ASSERT_TRUE(h_.run_until([this] { return node("n1").up && h_.cluster.leader() != nullptr; }));
  // A write that two of three confirmed under the former size.
  const auto lead = h_.cluster.leader()->name;
  const std::string behind = lead == "n3" ? "n2" : "n3";
  const auto before = node(behind).writer;
  for (auto& each : h_.cluster.nodes) {
    each.writer += each.up && each.name != behind ? 5'000 : 0;
  }
  node(behind).files.catches_up_at.reset();
  node(behind).state = api::NodeState::kFollower;
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_FALSE(node("n4").up || node("n5").up);
  node(behind).writer = before + 5'000;
  expect_grown(run);
}

TEST_F(Growing, AServerThatReportsTheFormerSizeUndoesAll) {
  begin();
  size("n3").failing = 1'000;
  const auto run = start(to_five());
  expect_as_before(run, 3);
  EXPECT_EQ(size("n2").restores, 1);
}

TEST_F(Growing, ACancelledRunGoesTheSameWayBack) {
  for (const auto* when_cancelled : {"n2", "n3", "n1", "n4"}) {
    SCOPED_TRACE(when_cancelled);
    struct One : ResizeRun {
      void TestBody() override {}
      void cancel_at(const std::string& name) {
        begin();
        bool reached = false;
        when(name, name == "n4" ? "start_service" : "server_size", [&] { reached = true; });
        const auto run = start(to_five());
        ASSERT_TRUE(h_.run_until([&] { return reached; }));
        h_.run_until([] { return false; }, std::chrono::milliseconds(300));
        ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
        expect_as_before(run, 3);
        EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
      }
    };
    One{}.cancel_at(when_cancelled);
  }
}

TEST_F(Growing, GoingBackOneAfterTheOtherTheLastOneFirst) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(to_five());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up && node("n5").up; }));
  std::vector<std::string> order;
  std::ptrdiff_t most_down = 0;
  h_.cluster.acted = [&](const FakeNode& to, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      order.push_back(nlohmann::json::parse(request.body).at("kind").get<std::string>() + " " +
                      to.name);
    }
    most_down = std::max<std::ptrdiff_t>(
        most_down, std::ranges::count_if(h_.cluster.nodes, [](const FakeNode& each) {
          return each.index <= 3 && !each.up;
        }));
  };
  h_.cluster.catch_up_takes = std::chrono::seconds(1);
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  expect_as_before(run, 3);
  std::erase_if(order, [](const std::string& each) {
    return !each.starts_with("server_size_restore") && !each.starts_with("stop_server");
  });
  ASSERT_GE(order.size(), 5U);
  std::ranges::sort(order.begin(), order.begin() + 2);
  EXPECT_THAT(order, ElementsAre("stop_server n4", "stop_server n5", "server_size_restore n1",
                                 "server_size_restore n3", "server_size_restore n2"));
  EXPECT_EQ(most_down, 1);
}

TEST_F(Growing, NewVotersThatAreNeededForAQuorumAreNotStopped) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(to_five());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up && node("n5").up; }));
  node("n3").up = false;
  node("n3").agent_up = false;
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  h_.run_until([] { return false; }, std::chrono::seconds(30));
  EXPECT_TRUE(node("n4").up && node("n5").up);
  EXPECT_EQ(size("n1").running, 5);
  node("n3").up = true;
  node("n3").agent_up = true;
  node("n3").state = api::NodeState::kFollower;
  expect_as_before(run, 3);
}

TEST_F(Growing, MembersKeepTheirSizeBesideANewVoterThatCannotBeStopped) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(to_five());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up && node("n5").up; }));
  node("n4").agent_up = false;
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(report(run)["outcome"], "not-undone");
  EXPECT_THAT(sizes(), ElementsAre(5, 5, 5, 5, 0));
  EXPECT_FALSE(h_.cluster.two_quorums);
  EXPECT_THAT(report(run)["commands"].dump(), HasSubstr("set ClusterSize: 3 in /etc/server.conf"));
}

TEST_F(Growing, ANewServerThatSomethingElseStartsUndoesAll) {
  begin();
  const auto run = start(to_five());
  ASSERT_TRUE(h_.run_until([this] { return size("n2").restarting.has_value(); }));
  h_.cluster.start_by_itself("n5");
  ASSERT_TRUE(h_.run_until([&] {
    const auto events = h_.events(run);
    return std::ranges::find(events, "undo-started") != events.end();
  }));
  ASSERT_TRUE(ends(run));
  EXPECT_FALSE(node("n5").up) << "it is stopped first";
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n5 runs"));
  EXPECT_EQ(size("n2").running, 3);
}

TEST_F(Growing, ANewServerThatCountsToTheFormerSizeIsStoppedBeforeTheOtherOneStarts) {
  begin();
  size("n4").by_flag = 3;
  const auto run = start(to_five());
  expect_as_before(run, 3);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n4 runs with cluster size 3, and 5 is in its file"));
  EXPECT_EQ(node("n5").files.starts, 0);
}

TEST_F(Growing, ANewVoterMayBeElectedWhileTheOtherOneCatchesUp) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(to_five());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up && node("n5").up; }));
  node("n4").writer = node("n1").writer;
  h_.cluster.elect("n4");
  node("n5").state = api::NodeState::kCatchingUp;
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_EQ(registered().size(), 3U);
  node("n5").writer = node("n1").writer;
  node("n5").state = api::NodeState::kFollower;
  expect_grown(run);
}

TEST_F(Growing, FilesOfANewVoterStayUntilAllMembersHaveWhatItConfirmed) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(to_five());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up && node("n5").up; }));
  h_.cluster.catch_up_takes = std::chrono::seconds(1);
  node("n1").writer = node("n2").writer = 20'000;  // and n4 confirmed it
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  h_.run_until([] { return false; }, std::chrono::seconds(40));
  EXPECT_FALSE(node("n4").up || node("n5").up);
  EXPECT_THAT(sizes(), ElementsAre(5, 5, 5, 0, 0));
  EXPECT_NE(node("n4").files.history, "");
  node("n3").writer = 20'000;
  expect_as_before(run, 3);
}

TEST(HasCommitted, ALogThatEndsWhereTheLastCommittedRecordBeginsLacksIt) {
  planner::NodeSnapshot leader;
  planner::NodeSnapshot follower;
  leader.last_commit_position = 9'000;  // of a server: where it begins
  leader.writer_checkpoint = 9'150;
  follower.writer_checkpoint = 9'000;
  EXPECT_FALSE(cluster_restore::has_committed(follower, leader));
  follower.writer_checkpoint = 9'150;
  EXPECT_TRUE(cluster_restore::has_committed(follower, leader));
  leader.last_commit_position = 9'150;  // of an embedded node: where it ends
  EXPECT_TRUE(cluster_restore::has_committed(follower, leader));
  leader.writer_checkpoint = follower.writer_checkpoint = leader.last_commit_position = -1;
  EXPECT_FALSE(cluster_restore::has_committed(follower, leader));
}

TEST_F(Growing, ThePlanStatesTheQuorumOfEachMoment) {
  begin();
  const auto made = h_.wait_for(h_.executor->make_plan("prod", to_five(), "test"));
  ASSERT_TRUE(made.has_value() && made->has_value())
      << ::testing::PrintToString(refusals(to_five()));
  const auto& plan = *(*made)->plan;
  ASSERT_EQ(plan.stages.size(), 1U);
  EXPECT_TRUE(plan.stages.front().atomic);
  EXPECT_THAT(plan.notes,
              AllOf(Contains("before: 3 voters, 3 up, 2 confirm a write, 1 may fail"),
                    Contains(HasSubstr("from the restart of n2: 3 voters, one of them of size 5")),
                    Contains(HasSubstr("writes may pause until n1 is restarted")),
                    Contains("from the restart of n1: 3 voters of size 5, 3 confirm a write, 0 may "
                             "fail"),
                    Contains("afterwards: 5 voters, 3 confirm a write, 2 may fail")));
  EXPECT_EQ(plan.basis.nodes.size(), 3U);
}

TEST_F(Growing, RefusesWhatIsNotReady) {
  begin();
  const auto policy = to_five();
  EXPECT_THAT(refusals(policy), IsEmpty());
  size("n2").problem = "the server was started with --cluster-size 3";
  EXPECT_THAT(refusals(policy), ElementsAre("size-not-in-file n2"));
  size("n2").problem.clear();
  size("n2").in_file = 7;
  EXPECT_THAT(refusals(policy), ElementsAre("another-size n2"));
  size("n2").in_file = 3;
  size("n4").in_file = 3;
  EXPECT_THAT(refusals(policy), ElementsAre("another-size n4"));
  size("n4").in_file = 5;
  size("n3").known = false;
  EXPECT_THAT(refusals(policy), ElementsAre("agent-cannot-resize n3"));
  size("n3").known = true;
  node("n3").service_control = false;
  EXPECT_THAT(refusals(policy), ElementsAre("no-service-control n3"));
  node("n3").service_control = true;
  node("n5").up = true;
  EXPECT_THAT(refusals(policy), Contains("node-runs n5"));
  node("n5").up = false;
  auto other = policy;
  planner::resize_of(other).to = 7;
  EXPECT_THAT(refusals(other), Contains("size-not-possible"));
  planner::resize_of(other).to = 4;
  EXPECT_THAT(refusals(other), Contains("policy-invalid"));
  other = policy;
  planner::resize_of(other).nodes = "n4=http://10.0.0.4:2113";
  planner::resize_of(other).agents = "http://10.0.0.4:2114";
  EXPECT_THAT(refusals(other), ElementsAre("no-node-named"));
}

TEST_F(Shrinking, FiveVotersBecomeThree) {
  begin();
  const auto run = start(to_three());
  expect_shrunk(run);
  EXPECT_THAT(h_.alerts(run), IsEmpty());
  EXPECT_THAT(node("n4").files.ordered_stop, ::testing::Not(IsEmpty())) << "kept so";
}

TEST_F(Shrinking, ServersThatDoNotReplicateBetweenSizesPauseAndContinue) {
  h_.cluster.sizes_differ_apart = true;
  begin();
  expect_shrunk(start(to_three("n4,n5")));
}

TEST_F(Shrinking, TheSmallerSizeWaitsForWhatThoseThatLeaveHaveConfirmed) {
  begin();
  const auto run = start(to_three());
  ASSERT_TRUE(h_.run_until([this] { return !node("n5").up && !node("n4").up; }));
  node("n1").writer = 20'000;  // n1, n4 and n5 confirmed it
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_THAT(sizes(), ElementsAre(5, 5, 5, 0, 0));
  node("n2").writer = node("n3").writer = 20'000;
  expect_shrunk(run);
}

TEST_F(Shrinking, ADeadVoterLeavesOnceAnOperatorAnswersForIt) {
  begin();
  node("n5").up = false;
  node("n5").agent_up = false;
  node("n5").state = api::NodeState::kUnknown;
  EXPECT_THAT(refusals(to_three()), Contains("not-fenced n5"));
  auto policy = to_three("n4,n5");
  planner::resize_of(policy).leaving_are_gone = true;
  EXPECT_THAT(refusals(policy), IsEmpty());
  expect_shrunk(start(policy));
}

TEST_F(Shrinking, ALeaderThatLeavesIsTheLastAndResignsFirst) {
  begin();
  std::vector<std::string> stopped;
  h_.cluster.acted = [&](const FakeNode& to, const http::Request& request) {
    if (request.target == "/agent/v1/operations") {
      const auto asked = nlohmann::json::parse(request.body);
      if (asked.at("kind") == "stop_server") {
        stopped.push_back(to.name);
        EXPECT_EQ(asked.at("parameters").value("resignFirst", false), to.name == "n1");
      }
    }
  };
  const auto run = start(to_three("n1,n2"));
  ASSERT_TRUE(ends(run));
  ASSERT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_THAT(stopped, ElementsAre("n2", "n1"));
  EXPECT_THAT(sizes(), ElementsAre(0, 0, 3, 3, 3));
  EXPECT_THAT(registered(), ElementsAre("n3", "n4", "n5"));
  EXPECT_FALSE(h_.cluster.two_quorums);
  EXPECT_THAT(nlohmann::json(h_.state(run).plan->notes).dump(), HasSubstr("n1 leads: it resigns"));
}

TEST_F(Shrinking, RefusesOthersThanTwoVotersOfTheCluster) {
  begin();
  EXPECT_THAT(refusals(to_three("n2")), ElementsAre("no-node-named"));
  EXPECT_THAT(refusals(to_three("n9,n4")), Contains("unknown-node n9"));
}

TEST_F(Shrinking, OneThatIsElectedBeforeItsTurnResignsFirst) {
  begin();
  std::vector<std::string> resigning;
  h_.cluster.acted = [&](const FakeNode& to, const http::Request& request) {
    if (request.target != "/agent/v1/operations") {
      return;
    }
    const auto asked = nlohmann::json::parse(request.body);
    if (asked.at("kind") == "stop_server" && asked.at("parameters").value("resignFirst", false)) {
      resigning.push_back(to.name);
    }
    if (asked.at("kind") == "stop_server" && to.name == "n4") {
      h_.cluster.elect("n5");
    }
  };
  const auto run = start(to_three("n4,n5"));
  expect_shrunk(run);
  EXPECT_THAT(resigning, ElementsAre("n5"));
}

TEST_F(Shrinking, ACancelledRunStartsThoseThatLeftLast) {
  for (const auto* when_cancelled : {"n5", "n2", "n3", "n1"}) {
    SCOPED_TRACE(when_cancelled);
    struct One : ResizeRun {
      One() : ResizeRun(5) {}
      void TestBody() override {}
      void cancel_at(const std::string& name) {
        begin();
        bool reached = false;
        when(name, name == "n5" ? "stop_server" : "server_size", [&] { reached = true; });
        const auto run = start(to_three());
        ASSERT_TRUE(h_.run_until([&] { return reached; }));
        h_.run_until([] { return false; }, std::chrono::milliseconds(300));
        ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
        expect_as_before(run, 5);
      }
    };
    One{}.cancel_at(when_cancelled);
  }
}

TEST_F(Shrinking, ThoseThatLeftStayStoppedBesideAVoterThatKeepsTheSmallerSize) {
  begin();
  size("n2").failing_restores = 1'000;
  size("n3").failing = 1'000;
  const auto run = start(to_three());
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(report(run)["outcome"], "not-undone");
  EXPECT_THAT(sizes(), ElementsAre(5, 3, 5, 0, 0));
  EXPECT_FALSE(h_.cluster.two_quorums);
}

TEST_F(Shrinking, OneThatLeftAndIsStartedBySomethingElseUndoesAll) {
  begin();
  const auto run = start(to_three());
  ASSERT_TRUE(h_.run_until([this] { return size("n2").restarting.has_value(); }));
  h_.cluster.start_by_itself("n4");
  ASSERT_TRUE(ends(run));
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n4 runs"));
  EXPECT_EQ(registered().size(), 5U);
}

}  // namespace
}  // namespace verger::controller
