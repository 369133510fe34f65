// Clusters without agents: what is claimed of a node of which only its routes can be seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

namespace verger::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class WithoutAgents : public ::testing::Test {
 protected:
  void begin() {
    h_.boot();
    h_.register_cluster();
    run_ = h_.start_scavenge(ControllerHarness::quick_policy());
  }
  void expect_each_node_finished_once(std::int64_t point) {
    const auto state = h_.state(run_);
    EXPECT_EQ(state.status, controller::RunStatus::kDone) << state.reason;
    for (const auto& node : h_.cluster.nodes) {
      EXPECT_EQ(node.finished, (std::map<std::int64_t, int>{{point, 1}})) << node.name;
    }
  }
  /// Each node first gets a start for what earlier runs left open, which makes no new point.
  static bool asks_for_new_point(const http::Request& request) {
    return request.target.starts_with("/admin/scavenge?") &&
           request.target.find("syncOnly=true") == std::string::npos;
  }
  /// The reply to the first start on `name` that makes a new point is lost, and the scavenge
  /// ends before the next look.
  void lose_first_reply_of(const std::string& name) {
    h_.cluster.scavenge_takes = std::chrono::milliseconds(1);
    h_.cluster.fate = [this, name](const FakeNode& node, const http::Request& request) {
      const bool first =
          node.name == name && asks_for_new_point(request) && std::exchange(to_lose_, false);
      return first ? std::optional(Fate::kReplyLost) : std::nullopt;
    };
  }

  /// Ends the scavenge of n2 that made a point, on its disk; then the power fails, before the node
  /// has reported so.
  void cut_power_before_report() {
    auto& maker = h_.cluster.node("n2");
    const auto at_work = [&] { return maker.running && maker.running->point >= 0; };
    ASSERT_TRUE(h_.run_until(at_work));
    maker.last_finished = maker.running->point;
    ++maker.finished[maker.running->point];
    maker.unfinished.reset();
    h_.cluster.restart("n2");
  }
  /// What the step that makes the point left with its first intent, and how its attempts ended.
  [[nodiscard]] std::string points_before() const {
    const auto values = h_.state(run_).values;
    const auto found = values.find("points_before");
    return found == values.end() ? "" : found->second;
  }
  [[nodiscard]] std::vector<std::string> outcomes_of(const std::string& step) const {
    std::vector<std::string> out;
    for (const auto& each : json::parse(h_.state(run_).steps.at(step).outcomes)) {
      out.push_back(each.at("outcome").get<std::string>());
    }
    return out;
  }

  ControllerHarness h_{3, false};
  std::string run_;
  bool to_lose_ = true;
};

TEST_F(WithoutAgents, AFollowerWhoseLogMayLackThePointIsNotStarted) {
  auto& behind = h_.cluster.node("n3");
  behind.writer = 9'000;  // the lag gate permits it
  behind.visible_points = 0;
  begin();
  ASSERT_TRUE(h_.run_until([&] { return behind.scavenge_starts == 1; })) << "what is open";
  ASSERT_TRUE(h_.run_until([&] {
    return h_.state(run_).steps["scavenge-n3"].reason.find("may not be in its log") !=
           std::string::npos;
  }));
  EXPECT_THAT(h_.state(run_).steps["scavenge-n3"].reason, HasSubstr("9000 of 10000 bytes"));
  EXPECT_EQ(behind.scavenge_starts, 1) << "not again";
  EXPECT_EQ(h_.cluster.points.size(), 1U);
  behind.writer = 10'000;
  behind.visible_points.reset();
  ASSERT_TRUE(h_.run_to_end(run_));
  expect_each_node_finished_once(0);
}

TEST_F(WithoutAgents, ARunThatFoundNothingToDoIsReportedAsUntouched) {
  h_.boot();
  h_.register_cluster();
  run_ = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.points.size() == 1; }));
  // Another person takes n3 to the point first.
  h_.cluster.start_by_hand("n3");
  ASSERT_TRUE(h_.run_to_end(run_));
  expect_each_node_finished_once(0);
  const auto state = h_.state(run_);
  EXPECT_EQ(json(*state.steps.at("scavenge-n3").result).at("untouched"), true);
  EXPECT_EQ(json(*state.steps.at("scavenge-n2").result).at("untouched"), false);
  const auto seen_by = [&state](const std::string& step) {
    return json(*state.steps.at(step).result).at("seen").get<std::string>();
  };
  EXPECT_THAT(seen_by("scavenge-n3"), HasSubstr("whose log has the point"));
  EXPECT_THAT(seen_by("finish-n3"), HasSubstr("nothing was left to finish"));
}

TEST_F(WithoutAgents, ALostReplyOfANodeThatSignsWithItsBoundAddressMakesNoSecondPoint) {
  h_.cluster.node("n2").signs_as = "192.168.7.2:2113";
  lose_first_reply_of("n2");
  begin();
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_FALSE(to_lose_);
  EXPECT_EQ(h_.cluster.points.size(), 1U);
  expect_each_node_finished_once(0);
}

TEST_F(WithoutAgents, ALostReplyIsFoundByTheLastScavengeOfNewerServers) {
  for (auto& node : h_.cluster.nodes) {
    node.version = "24.10.1";
  }
  std::string last;
  h_.cluster.dress = [&last](const FakeNode& node, const http::Request& request,
                             http::Response& response) {
    if (node.name != "n2") {
      return;
    }
    if (request.target.starts_with("/admin/scavenge?")) {
      last = json::parse(response.body).at("scavengeId").get<std::string>();
    } else if (request.target == "/admin/scavenge/last") {
      response.status = 200;
      response.headers.set("Content-Type", "application/json; charset=utf-8");
      response.body = json{{"scavengeId", last},
                           {"scavengeLink", ""},
                           {"scavengeResult", last.empty() ? "Unknown" : "Success"}}
                          .dump();
    } else if (request.target.starts_with("/streams/$scavenges")) {
      response.body = json{{"entries", json::array()}}.dump();  // its entries were lost
    }
  };
  lose_first_reply_of("n2");
  begin();
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_FALSE(to_lose_);
  EXPECT_EQ(h_.cluster.node("n2").scavenge_starts, 3) << "what is open, twice, and the point";
  expect_each_node_finished_once(0);
}

TEST_F(WithoutAgents, ALostRequestIsFollowedByOneThatMakesNoPointAndThenByOneThatDoes) {
  std::vector<std::string> asked;
  h_.cluster.fate = [&](const FakeNode& node, const http::Request& request) -> std::optional<Fate> {
    if (node.name != "n2" || !request.target.starts_with("/admin/scavenge?")) {
      return std::nullopt;
    }
    asked.push_back(asks_for_new_point(request) ? "new" : "sync");
    return asked.back() == "new" && std::exchange(to_lose_, false) ? std::optional(Fate::kLost)
                                                                   : std::nullopt;
  };
  begin();
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_THAT(asked, ::testing::ElementsAre("sync", "sync", "new", "sync", "new"));
  EXPECT_EQ(h_.cluster.points.size(), 1U);
  expect_each_node_finished_once(0);
}

TEST_F(WithoutAgents, APointThatItsMakerHadDoneBeforeItReportedSoIsNotMadeAgain) {
  h_.cluster.points_answer = 200;
  h_.cluster.points = {500};  // of earlier days
  for (auto& node : h_.cluster.nodes) {
    node.last_finished = 0;
  }
  begin();
  ASSERT_NO_FATAL_FAILURE(cut_power_before_report());
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_EQ(h_.cluster.points.size(), 2U);
  expect_each_node_finished_once(1);
  EXPECT_EQ(points_before(), R"({"number":0})");
  EXPECT_THAT(outcomes_of("scavenge-n2"), ::testing::ElementsAre("interrupted"));
  EXPECT_EQ(json(*h_.state(run_).steps.at("scavenge-n2").result).at("untouched"), true);
}

TEST_F(WithoutAgents, WhatWasThereBeforeIsKnownAfterARestartOfTheController) {
  h_.cluster.points_answer = 200;
  begin();
  ASSERT_NO_FATAL_FAILURE(cut_power_before_report());
  h_.crash();
  h_.boot();
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_EQ(h_.cluster.points.size(), 1U);
  expect_each_node_finished_once(0);
  EXPECT_EQ(points_before(), R"({"number":-1})");
}

TEST_F(WithoutAgents, ThePointOfAMakerThatIsLeftOutIsTakenByTheNextNode) {
  h_.cluster.points_answer = 200;
  begin();
  ASSERT_NO_FATAL_FAILURE(cut_power_before_report());
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run_, "n2", "me", "it fails")).has_value());
  auto& next = h_.cluster.node("n3");
  ASSERT_TRUE(h_.run_until([&] { return next.running && next.running->point >= 0; }));
  next.last_finished = next.running->point;
  ++next.finished[next.running->point];
  next.unfinished.reset();
  h_.cluster.restart("n3");
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_EQ(h_.cluster.points.size(), 1U);
  expect_each_node_finished_once(0);
}

TEST_F(WithoutAgents, APointThatWasNotMadeIsAskedForAgainWherePointsAreRead) {
  h_.cluster.points_answer = 200;
  h_.cluster.points = {500};
  for (auto& node : h_.cluster.nodes) {
    node.last_finished = 0;
  }
  h_.cluster.fate = [&](const FakeNode& node, const http::Request& request) {
    return node.name == "n2" && asks_for_new_point(request) && std::exchange(to_lose_, false)
               ? std::optional(Fate::kLost)
               : std::nullopt;
  };
  begin();
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_EQ(h_.cluster.points.size(), 2U);
  expect_each_node_finished_once(1);
  EXPECT_THAT(outcomes_of("scavenge-n2"), ::testing::ElementsAre("no-trace", "nothing-to-do"));
}

TEST_F(WithoutAgents, WherePointsCannotBeReadASecondOneIsMade) {
  for (const int status : {404, 401, 500}) {  // AtomPub is off; no role; the server fails
    SCOPED_TRACE(status);
    ControllerHarness h{3, false};
    h.cluster.points_answer = status;
    h.boot();
    h.register_cluster();
    const auto run = h.start_scavenge(ControllerHarness::quick_policy());
    auto& maker = h.cluster.node("n2");
    ASSERT_TRUE(h.run_until([&] { return maker.running && maker.running->point >= 0; }));
    maker.last_finished = maker.running->point;
    maker.unfinished.reset();
    h.cluster.restart("n2");
    ASSERT_TRUE(h.run_to_end(run));
    EXPECT_EQ(h.state(run).status, controller::RunStatus::kDone);
    EXPECT_EQ(h.cluster.points.size(), 2U);
    EXPECT_THAT(h.state(run).values.at("points_before"), HasSubstr("unreadable"));
  }
}

TEST_F(WithoutAgents, NoPointIsAskedForWhileTheNodeIsNotReadyToShowItsPoints) {
  h_.cluster.points_answer = 503;
  begin();
  ASSERT_TRUE(h_.run_until([&] {
    return h_.state(run_).steps["scavenge-n2"].reason.find("points cannot be read") !=
           std::string::npos;
  }));
  EXPECT_TRUE(h_.cluster.points.empty());
  h_.cluster.points_answer = 200;
  ASSERT_TRUE(h_.run_to_end(run_));
  expect_each_node_finished_once(0);
}

TEST_F(WithoutAgents, AnErrorIsCalledErroredByWhicheverWordTheVersionHasForIt) {
  h_.boot();
  h_.register_cluster();
  run_ = h_.start_scavenge(ControllerHarness::quick_policy());
  // Where it stands in the plan, the first scavenge on n3 that has work to do.
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.points.size() == 1; }));
  h_.cluster.node("n3").next_ends = {"Errored", "Interrupted: There is not enough space."};
  ASSERT_TRUE(h_.run_to_end(run_));
  expect_each_node_finished_once(0);
  std::vector<std::string> outcomes;
  for (const auto& [id, step] : h_.state(run_).steps) {
    for (const auto& each : json::parse(step.outcomes)) {
      outcomes.push_back(each.at("outcome").get<std::string>());
    }
  }
  EXPECT_THAT(outcomes, ::testing::ElementsAre("errored", "errored"));
}

TEST_F(WithoutAgents, AClusterWhoseLogLostAnEpochIsAnotherCluster) {
  h_.cluster.epoch = 7;
  begin();
  ASSERT_TRUE(h_.run_to_end(run_));
  h_.cluster.epoch = 3;
  try {
    h_.start_scavenge(ControllerHarness::quick_policy());
    ADD_FAILURE() << "it was planned";
  } catch (const std::runtime_error& refused) {
    EXPECT_THAT(refused.what(), HasSubstr("wrong-cluster"));
    EXPECT_THAT(refused.what(), HasSubstr("was in epoch"));
  }
}

}  // namespace
}  // namespace verger::test
