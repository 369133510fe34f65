// A new node, seeded from a backup: a member once it follows, and nothing has changed otherwise.
#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/operations/growth/growth_module.h"
#include "planner/growth/growth_policy.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using test::FakeNode;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// n1 leads n2 and n3; n4 is a machine with an agent, and all agents see backup "g1".
class Growth : public ::testing::Test {
 protected:
  Growth() {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.knows_restores = true;
    h_.cluster.restorable.front().last_verify =
        api::BackupCheckSummary{.at = Ticks(kUnixEpoch.value() + 1), .passed = true};
  }
  void begin(bool replica = true) {
    h_.cluster.add_spare(replica);
    h_.boot();
    h_.register_cluster();
  }
  void kill(const std::string& name, bool its_agent) {
    node(name).up = false;
    node(name).agent_up = !its_agent;
    node(name).state = api::NodeState::kUnknown;
  }
  FakeNode& node(const std::string& name) { return h_.cluster.node(name); }

  static planner::Policy of_replica() {
    planner::GrowthPolicy wanted;
    wanted.name = "n4";
    wanted.node = "http://10.0.0.4:2113";
    wanted.agent = "http://10.0.0.4:2114";
    wanted.repository = "main";
    return policy_of(wanted);
  }
  static planner::Policy of_voter(bool gone) {
    auto out = of_replica();
    auto& wanted = planner::growth_of(out);
    wanted.role = planner::GrowthRole::kVoter;
    wanted.replaces = "n3";
    wanted.replaced_is_gone = gone;
    return out;
  }
  static planner::Policy policy_of(planner::GrowthPolicy wanted) {
    auto out = test::ControllerHarness::quick_policy();
    out.limits.undo_deadline_ms = 60'000;
    out.limits.service_deadline_ms = 60'000;
    out.operation = std::move(wanted);
    return out;
  }

  std::string start(const planner::Policy& policy) { return h_.start_scavenge(policy); }
  std::vector<std::string> refusals(const planner::Policy& policy) {
    auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
    std::vector<std::string> out;
    if (made && !*made) {
      for (const auto& each : made->error().refusals) {
        out.push_back(each.node.empty() ? each.code : each.code + " " + each.node);
      }
    }
    return out;
  }
  std::vector<std::string> registered() {
    std::vector<std::string> out;
    for (const auto& each : h_.registry->find("prod")->nodes) {
      out.push_back(each.name);
    }
    return out;
  }
  nlohmann::json report(const std::string& run) {
    return growth::report(h_.state(run), nlohmann::json::object());
  }
  bool ends(const std::string& run) { return h_.run_to_end(run, std::chrono::hours(30)); }
  void expect_joined(const std::string& run) {
    ASSERT_TRUE(ends(run)) << snapshot_of(h_.state(run)).state;
    ASSERT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    EXPECT_TRUE(node("n4").up);
    EXPECT_EQ(node("n4").files.restores, 1);
    EXPECT_EQ(node("n4").writer, node("n1").writer);
    EXPECT_EQ(report(run)["outcome"], "joined") << report(run).dump(1);
    const auto config = *h_.registry->find("prod");
    const auto* joined = config.find("n4");
    ASSERT_NE(joined, nullptr);
    EXPECT_EQ(joined->url, "http://10.0.0.4:2113");
    EXPECT_EQ(joined->agent_url, "http://10.0.0.4:2114");
  }
  void expect_undone(const std::string& run) {
    ASSERT_TRUE(ends(run)) << snapshot_of(h_.state(run)).state;
    EXPECT_FALSE(node("n4").up);
    EXPECT_EQ(node("n4").files.history, "") << "its former files";
    EXPECT_THAT(registered(), ElementsAre("n1", "n2", "n3"));
    EXPECT_EQ(report(run)["outcome"], "undone") << report(run).dump(1);
  }
  /// The first time that the agent of n4 gets an operation of that kind.
  void when(const std::string& kind, std::function<void()> then) {
    h_.cluster.acted = [this, kind, then = std::move(then)](const FakeNode& to,
                                                            const http::Request& request) {
      if (to.name == "n4" && request.target == "/agent/v1/operations" &&
          nlohmann::json::parse(request.body).at("kind") == kind && !struck_) {
        struck_ = true;
        then();
      }
    };
  }

  test::ControllerHarness h_;
  bool struck_ = false;
};

TEST_F(Growth, AReadOnlyReplicaIsRegisteredOnceItFollows) {
  begin();
  const auto run = start(of_replica());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").files.restores == 1; }));
  EXPECT_THAT(registered(), ElementsAre("n1", "n2", "n3")) << "it does not follow yet";
  expect_joined(run);
  EXPECT_THAT(registered(), ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_THAT(h_.alerts(run), IsEmpty());
  EXPECT_THAT(report(run)["notes"].dump(),
              HasSubstr("verger restore discard-old prod --generation g1 --nodes n4"));
  EXPECT_EQ(node("n1").stops + node("n2").stops + node("n3").stops, 0);
}

TEST_F(Growth, TheNewNodeCountsForNothingBeforeItIsRegistered) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(of_replica());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up; }));
  h_.run_until([] { return false; }, std::chrono::minutes(1));
  const auto seen = h_.wait_for(h_.executor->observe("prod"));
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->nodes.size(), 3U);
  EXPECT_EQ(seen->find("n4"), nullptr) << "the run alone looks at it";
  expect_joined(run);
}

TEST_F(Growth, ADeadVoterIsReplacedAndItsAgentKeepsItStopped) {
  begin(/*replica=*/false);
  kill("n3", /*its_agent=*/false);
  const auto run = start(of_voter(/*gone=*/false));
  expect_joined(run);
  EXPECT_THAT(registered(), ElementsAre("n1", "n2", "n4"));
  EXPECT_TRUE(std::ranges::any_of(node("n3").operations, [](const auto& each) {
    return each.second.request.kind == "stop_server";
  }));
  EXPECT_EQ(report(run)["replaces"], "n3");
}

TEST_F(Growth, ADeadVoterWithoutAnAgentIsReplacedOnceAnOperatorAnswersForIt) {
  begin(/*replica=*/false);
  kill("n3", /*its_agent=*/true);
  EXPECT_THAT(refusals(of_voter(/*gone=*/false)), ElementsAre("not-fenced n3"));
  expect_joined(start(of_voter(/*gone=*/true)));
  EXPECT_THAT(registered(), ElementsAre("n1", "n2", "n4"));
}

TEST_F(Growth, NobodyIsToldToStartTheReplacedNode) {
  h_.cluster.restore_takes = std::chrono::minutes(30);
  begin(/*replica=*/false);
  kill("n3", /*its_agent=*/true);
  const auto run = start(of_voter(/*gone=*/true));
  expect_joined(run);
  EXPECT_THAT(h_.alerts(run), IsEmpty());
}

TEST_F(Growth, ARestoreThatFailsLeavesEverythingAsItWas) {
  begin();
  node("n4").files.failing_restores = 5;
  const auto run = start(of_replica());
  expect_undone(run);
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(node("n4").files.starts, 0);
}

TEST_F(Growth, ANodeThatStartsInAnotherRoleIsStoppedAndReverted) {
  begin();
  when("start_service", [this] { node("n4").read_only_replica = false; });
  const auto run = start(of_replica());
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n4 runs as a voter"));
  EXPECT_EQ(node("n4").files.reverts, 1);
}

TEST_F(Growth, ANodeOfAnotherVersionIsStoppedAndReverted) {
  begin();
  node("n4").version = "25.0.0";
  const auto run = start(of_replica());
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("version 25.0.0"));
}

TEST_F(Growth, ANodeThatNeverCatchesUpIsStoppedAndRevertedAtItsDeadline) {
  h_.cluster.catch_up_takes = std::chrono::hours(100);
  begin();
  auto policy = of_replica();
  planner::growth_of(policy).join_deadline_ms = 600'000;
  const auto run = start(policy);
  expect_undone(run);
  EXPECT_EQ(node("n4").files.reverts, 1);
}

TEST_F(Growth, AReplacedNodeThatComesBackEndsTheRun) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin(/*replica=*/false);
  kill("n3", /*its_agent=*/true);
  const auto run = start(of_voter(/*gone=*/true));
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up; }));
  node("n3").up = true;
  node("n3").state = api::NodeState::kFollower;
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n3 runs again"));
}

TEST_F(Growth, TheFilesOfAVoterStayUntilTheOthersHaveWhatIsCommitted) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin(/*replica=*/false);
  kill("n3", /*its_agent=*/true);
  const auto run = start(of_voter(/*gone=*/true));
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up; }));
  // n1 and n4 confirm a write that n2 does not have.
  node("n1").writer = node("n4").writer = 20'000;
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  ASSERT_TRUE(h_.run_until([this] { return !node("n4").up; }));
  h_.run_until([] { return false; }, std::chrono::seconds(20));
  EXPECT_EQ(node("n4").files.reverts, 0) << "with them the loss of n1 would lose the write";
  node("n2").writer = 20'000;
  expect_undone(run);
}

TEST_F(Growth, FilesOfAVoterThatAreNeededStayBeyondTheDeadline) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin(/*replica=*/false);
  kill("n3", /*its_agent=*/true);
  const auto run = start(of_voter(/*gone=*/true));
  ASSERT_TRUE(h_.run_until([this] { return node("n4").up; }));
  node("n1").writer = node("n4").writer = 20'000;
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(node("n4").files.history, "g1");
  EXPECT_EQ(node("n4").files.reverts, 0);
  EXPECT_EQ(report(run)["outcome"], "not-undone");
  EXPECT_THAT(report(run)["commands"].dump(), HasSubstr("start it again where the other voters"));
}

TEST_F(Growth, ACancelledRunIsUndone) {
  h_.cluster.restore_takes = std::chrono::minutes(10);
  begin();
  const auto run = start(of_replica());
  ASSERT_TRUE(h_.run_until([this] { return node("n4").files.restoring.has_value(); }));
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  expect_undone(run);
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
}

TEST_F(Growth, ARunThatIsCancelledWhileTheServerStartsStopsItAgain) {
  h_.cluster.catch_up_takes = std::chrono::minutes(10);
  begin();
  bool starts = false;
  when("start_service", [&] { starts = true; });
  const auto run = start(of_replica());
  ASSERT_TRUE(h_.run_until([&] { return starts; }));
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  expect_undone(run);
  EXPECT_EQ(node("n4").files.reverts, 1);
}

TEST_F(Growth, AControllerThatDiesAtAnyMomentIsFollowedByOneThatEndsTheRun) {
  for (const auto* when_to_die : {"restore", "start_service"}) {
    SCOPED_TRACE(when_to_die);
    test::ControllerHarness other;
    bool dies = false;
    other.options.poll_interval = std::chrono::milliseconds(500);
    other.cluster.knows_restores = true;
    other.cluster.restorable = h_.cluster.restorable;
    other.cluster.add_spare(true);
    other.cluster.acted = [&](const FakeNode& to, const http::Request& request) {
      dies = dies || (to.name == "n4" && request.target == "/agent/v1/operations" &&
                      nlohmann::json::parse(request.body).at("kind") == when_to_die);
    };
    other.boot();
    other.register_cluster();
    const auto run = other.start_scavenge(of_replica());
    ASSERT_TRUE(other.run_until([&] { return dies; }));
    other.crash();
    other.boot();
    ASSERT_TRUE(other.run_to_end(run, std::chrono::hours(30)));
    EXPECT_EQ(other.state(run).status, RunStatus::kDone) << other.state(run).reason;
    EXPECT_NE(other.registry->find("prod")->find("n4"), nullptr);
    EXPECT_EQ(other.cluster.node("n4").files.restores, 1);
  }
}

TEST_F(Growth, BehindTheLineACrashRegistersItAllTheSame) {
  begin();
  const auto run = start(of_replica());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(run).values.contains("restore_committed/n4"); }));
  h_.crash();
  h_.boot();
  ASSERT_TRUE(h_.executor->cancel(run, "test", "").has_value());
  ASSERT_TRUE(ends(run));
  EXPECT_TRUE(node("n4").up);
  EXPECT_THAT(registered(), Contains("n4"));
}

TEST_F(Growth, RefusesWhatCannotJoin) {
  begin();
  auto policy = of_replica();
  auto& wanted = planner::growth_of(policy);
  wanted.name = "n2";
  EXPECT_THAT(refusals(policy), ElementsAre("cannot-join"));
  wanted.name = "n4";
  wanted.node = "http://10.0.0.2:2113";
  EXPECT_THAT(refusals(policy), ElementsAre("cannot-join"));
  wanted.node = "http://10.0.0.4:2113";
  wanted.agent.clear();
  EXPECT_THAT(refusals(policy), ElementsAre("no-agent n4"));
  wanted.agent = "http://10.0.0.4:2114";
  wanted.role = planner::GrowthRole::kVoter;
  EXPECT_THAT(refusals(policy), ElementsAre("policy-invalid"));
  wanted.replaces = "n3";
  EXPECT_THAT(refusals(policy), ElementsAre("replaced-runs n3"));
  wanted.replaces = "n9";
  EXPECT_THAT(refusals(policy), ElementsAre("unknown-node n9"));
}

TEST_F(Growth, RefusesAMachineThatIsNotReady) {
  begin();
  const auto policy = of_replica();
  node("n4").up = true;
  EXPECT_THAT(refusals(policy), Contains("node-runs n4"));
  node("n4").up = false;
  node("n4").agent_up = false;
  EXPECT_THAT(refusals(policy), Contains("agent-gone n4"));
  node("n4").agent_up = true;
  node("n4").files.has_repository = false;
  EXPECT_THAT(refusals(policy), ElementsAre("no-repository n4"));
  node("n4").files.has_repository = true;
  node("n4").service_control = false;
  EXPECT_THAT(refusals(policy), ElementsAre("no-service-control n4"));
  node("n4").service_control = true;
  node("n4").disk_free = 1'000;
  EXPECT_THAT(refusals(policy), ElementsAre("disk-too-small n4"));
  node("n4").disk_free = std::int64_t{1} << 39U;
  node("n4").database = "db-9";
  EXPECT_THAT(refusals(policy), ElementsAre("another-database n4"));
  node("n4").database.clear();
  node("n4").files.kept = test::FakeFiles::Kept{.generation = "g1", .history = "own", .writer = 0};
  EXPECT_THAT(refusals(policy), ElementsAre("former-files-kept n4"));
  node("n4").files.kept.reset();
  h_.cluster.restorable.front().last_verify.reset();
  EXPECT_THAT(refusals(policy), ElementsAre("not-verified"));
  h_.cluster.restorable.clear();
  EXPECT_THAT(refusals(policy), ElementsAre("no-generation"));
}

TEST_F(Growth, RefusesCertificatesThatTheMembersDoNotTake) {
  h_.scheme = "https";
  h_.cluster.certificates = std::make_unique<test::FakeCertificateCluster>(h_.time, 4);
  begin();
  auto policy = of_replica();
  auto& wanted = planner::growth_of(policy);
  wanted.node = "https://10.0.0.4:2113";
  wanted.agent = "https://10.0.0.4:2114";
  EXPECT_THAT(refusals(policy), IsEmpty());
  h_.cluster.certificates->node("n2").refuses_clients = true;
  EXPECT_THAT(refusals(policy), ElementsAre("certificate-not-accepted n4"));
  h_.cluster.certificates->node("n2").refuses_clients = false;
  const auto other = test::FakeAuthority::make("another root", h_.time.now());
  h_.cluster.certificates->node("n4").disk = h_.cluster.certificates->leaf_of(other, 4);
  h_.cluster.certificates->node("n4").disk.roots = {{"ca.crt", other.certificate}};
  EXPECT_THAT(refusals(policy), Contains("certificates-not-trusted n4"));
}

TEST_F(Growth, ThePlanStatesTheQuorum) {
  begin(/*replica=*/false);
  kill("n3", /*its_agent=*/true);
  const auto made = h_.wait_for(h_.executor->make_plan("prod", of_voter(/*gone=*/true), "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  const auto& plan = *(*made)->plan;
  EXPECT_THAT(plan.notes,
              Contains(AllOf(HasSubstr("quorum before: 2 of 3 voters are up, 2 are needed, so 0 "
                                       "more may fail"),
                             HasSubstr("afterwards: 3 of 3 up, 1 may fail"))));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("n3 must never start again")));
  ASSERT_EQ(plan.stages.size(), 1U);
  EXPECT_TRUE(plan.stages.front().atomic);
  EXPECT_EQ(plan.basis.nodes.size(), 3U) << "the new one is in the policy";
}

}  // namespace
}  // namespace verger::controller
