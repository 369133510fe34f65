#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/operations/operation_modules.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Verification : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.boot();
    h_.register_cluster();
  }
  test::FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  std::string start() {
    auto policy = ControllerHarness::quick_policy();
    policy.operation = planner::VerifyPolicy();
    return h_.start_scavenge(policy);
  }
  json report_of(const std::string& run) {
    return find_operation_module("verify")->report(h_.state(run), json());
  }
  ControllerHarness h_;
};

TEST_F(Verification, OfSoundNodesIsDone) {
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  const auto report = report_of(run);
  EXPECT_EQ(report["outcome"], "sound");
  ASSERT_EQ(report["nodes"].size(), 3U);
  EXPECT_EQ(report["nodes"][0]["chunk_files"], 5);
  EXPECT_EQ(node("n1").stops + node("n2").stops + node("n3").stops, 0);
}

TEST_F(Verification, EndsWithDifferencesThatNameFileOffsetAndRemedy) {
  node("n2").damage = {"chunk-000003.000000"};
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDoneWithDifferences);
  const auto report = report_of(run);
  EXPECT_EQ(report["outcome"], "damaged");
  const auto& damaged = report["nodes"][1];
  EXPECT_EQ(damaged["state"], "damaged");
  EXPECT_EQ(damaged["damage"][0]["file"], "chunk-000003.000000");
  EXPECT_EQ(damaged["damage"][0]["offset"], 128);
  EXPECT_THAT(damaged["remedies"][0].get<std::string>(), HasSubstr("refill the node from a peer"));
  EXPECT_THAT(damaged["remedies"][0].get<std::string>(),
              HasSubstr("verger restore plan prod --repository R --scope node --nodes n2"));
  EXPECT_EQ(report["nodes"][0]["state"], "sound");
}

TEST_F(Verification, BehindAGateThatClosesWaitsAndIsDone) {
  node("n1").closed_at_last_look = 1;
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
  EXPECT_EQ(report_of(run)["outcome"], "sound");
}

TEST_F(Verification, ThatCannotLookAtANodeFails) {
  h_.cluster.operate_more = [](test::FakeNode& at, test::FakeOperation& operation) {
    if (at.name != "n2") {
      return false;
    }
    operation.status.state = api::OperationState::kFailed;
    operation.status.error_code = "conflict";
    operation.status.error = "chunk files were replaced meanwhile";
    return true;
  };
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(24)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("replaced meanwhile"));
  EXPECT_EQ(report_of(run)["outcome"], "unfinished");
  EXPECT_EQ(report_of(run)["nodes"][2]["state"], "not-looked-at");
}

class Healing : public Verification {
 protected:
  std::string heal(std::string nodes) {
    auto policy = ControllerHarness::quick_policy();
    planner::HealPolicy own;
    own.nodes = std::move(nodes);
    policy.operation = own;
    return h_.start_scavenge(policy);
  }
};

TEST_F(Healing, RestartsTheNodeAndReportsIt) {
  node("n3").lost_streams = 82;
  const auto run = heal("n3");
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(node("n3").stops, 1);
  EXPECT_EQ(node("n2").stops, 0);
  const auto report = find_operation_module("heal")->report(h_.state(run), json());
  EXPECT_EQ(report["outcome"], "healed");
  EXPECT_EQ(report["nodes"][0]["lost_before"], 82);
  EXPECT_EQ(report["nodes"][0]["lost_after"], 0);
}

TEST_F(Healing, OfTheLeaderMovesItFirst) {
  node("n1").lost_streams = 1;
  const auto run = heal("n1");
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(node("n1").stops, 1);
  EXPECT_EQ(h_.cluster.total_resigns(), 1);
}

}  // namespace
}  // namespace verger::controller
