#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/operations/operation_modules.h"
#include "engine/base/clock.h"
#include "tests/support/controller/controller_harness.h"

// Gates between the plan and the deed: closed after planning, and after the controller looked.
namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using ::testing::HasSubstr;

class GatesBeforeActing : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.scavenge_takes = std::chrono::seconds(20);
    h_.boot();
    h_.register_cluster();
  }
  test::FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  std::string start() { return h_.start_scavenge(ControllerHarness::quick_policy()); }
  /// Runs to the middle of n2's turn.
  std::string halfway() {
    auto run = start();
    EXPECT_TRUE(h_.run_until([this] { return node("n2").running.has_value(); }));
    return run;
  }
  void expect_waits(const std::string& run, const std::string& gate, const std::string& value) {
    h_.run_until([] { return false; }, std::chrono::minutes(2));
    const auto state = h_.state(run);
    EXPECT_EQ(state.status, RunStatus::kWaiting);
    EXPECT_EQ(node("n3").scavenge_starts, 0);
    const auto gates = json::parse(state.steps.at("scavenge-n3").gates);
    ASSERT_EQ(gates.size(), 1U) << gates.dump();
    EXPECT_EQ(gates[0]["gate"], gate);
    EXPECT_THAT(gates[0]["value"].get<std::string>(), HasSubstr(value));
    EXPECT_FALSE(gates[0]["limit"].get<std::string>().empty());
    EXPECT_FALSE(gates[0]["since"].get<std::string>().empty());
  }
  void expect_done(const std::string& run) {
    ASSERT_TRUE(h_.run_to_end(run)) << snapshot_of(h_.state(run)).state;
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  }
  ControllerHarness h_;
};

TEST_F(GatesBeforeActing, AClockThatIsOffHoldsTheNextStepBack) {
  const auto run = halfway();
  node("n1").clock_ahead = std::chrono::minutes(20);
  expect_waits(run, "clocks", "1200000 ms");
  node("n1").clock_ahead = {};
  expect_done(run);
}

TEST_F(GatesBeforeActing, ABackupByAnAgentHoldsTheNextStepBack) {
  const auto run = halfway();
  test::FakeOperation backup;
  backup.status = {.id = "b-1", .kind = "backup", .state = api::OperationState::kActing};
  node("n1").operations["b-1"] = backup;
  expect_waits(run, "no-other-work", "backup");
  node("n1").operations.erase("b-1");
  expect_done(run);
}

TEST_F(GatesBeforeActing, AnIndexThatIsMergedHoldsItsNodesStepBack) {
  const auto run = halfway();
  node("n3").index_merging = true;
  expect_waits(run, "index-idle", "merging");
  node("n3").index_merging = false;
  expect_done(run);
}

TEST_F(GatesBeforeActing, ALagThatGrowsHoldsTheNextStepBackThoughItIsBelowTheLimit) {
  for (auto& each : h_.cluster.nodes) {
    each.writer = std::int64_t{100} << 20U;
  }
  const auto run = halfway();
  h_.run_until([] { return false; }, std::chrono::seconds(8));
  node("n3").writer -= 4 << 20U;
  h_.run_until([this] { return !node("n2").running.has_value(); });
  h_.run_until([] { return false; }, std::chrono::seconds(2));
  EXPECT_EQ(node("n3").scavenge_starts, 0);
  // It stays as large as it was: that is not falling either.
  h_.run_until([] { return false; }, std::chrono::seconds(20));
  EXPECT_EQ(node("n3").scavenge_starts, 0);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("lags 4 MiB"));
  node("n3").writer += 4 << 20U;
  expect_done(run);
}

// Tournament: node dies between gate and act.
TEST_F(GatesBeforeActing, NodeDiesBetweenGateAndAct) {
  // n1 dies when the permits for n3's step are given: after the controller's gates.
  bool died = false;
  h_.cluster.acted = [&](const test::FakeNode& to, const http::Request& request) {
    if (!died && to.name == "n3" && request.target == "/agent/v1/permits" &&
        request.body.find("scavenge-n3/") != std::string::npos) {
      died = true;
      node("n3").up = false;
      node("n3").closed_at_last_look = 1;
    }
  };
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return died; }));
  h_.run_until([] { return false; }, std::chrono::minutes(3));
  EXPECT_EQ(node("n3").scavenge_starts, 0);
  EXPECT_NE(h_.state(run).steps.at("scavenge-n3").status, StepStatus::kDone);
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_FALSE(h_.state(run).reason.empty());
  node("n3").up = true;
  expect_done(run);
  EXPECT_EQ(node("n3").finished.at(0), 1);
}

TEST_F(GatesBeforeActing, AGateThatTheAgentFindsClosedCostsNoAttempt) {
  node("n3").closed_at_last_look = 8;
  const auto run = start();
  expect_done(run);
  const auto state = h_.state(run);
  const auto& step = state.steps.at("scavenge-n3");
  EXPECT_EQ(step.attempt, 1) << "eight times closed, five attempts allowed";
  const auto outcomes = json::parse(step.outcomes);
  ASSERT_EQ(outcomes.size(), 8U);
  EXPECT_EQ(outcomes[0]["outcome"], "gate_closed");
}

TEST_F(GatesBeforeActing, AnAttemptThatBeganNothingIsNoInterruptionInTheReport) {
  node("n2").closed_at_last_look = 1;
  node("n3").chunk_lock_held = 1;
  node("n1").next_ends = {"Interrupted"};
  const auto run = start();
  expect_done(run);
  std::vector<std::string> interrupted;
  const auto report = find_operation_module("scavenge")->report(h_.state(run), json());
  for (const std::string note : report["notes"]) {
    if (note.contains("was interrupted and resumed")) {
      interrupted.push_back(note.substr(0, 2));
    }
  }
  EXPECT_THAT(interrupted, ::testing::ElementsAre("n1")) << report["notes"];
}

// Tournament: certificate expires mid-run.
TEST(GatesOfCertificates, CertificateExpiresMidRun) {
  ControllerHarness h;
  h.options.poll_interval = std::chrono::seconds(5);
  h.cluster.scavenge_takes = std::chrono::hours(3);
  h.scheme = "https";
  const auto hours = [&h](std::int64_t count) {
    return Ticks(h.time.now().value() + count * 3'600 * kTicksPerSecond);
  };
  std::map<std::string, Ticks> ends;
  const auto start = hours(0);
  h.served_certificate =
      [&ends, start](http::Endpoint of) -> net::awaitable<Result<http::CertificateInfo>> {
    http::CertificateInfo out;
    const auto found = ends.find(of.host);
    out.serial = found == ends.end() ? "01" : "0A";
    out.not_after =
        format_ticks(found == ends.end() ? Ticks(start.value() + 400 * 86'400 * kTicksPerSecond)
                                         : found->second);
    co_return out;
  };
  ends["10.0.0.1"] = hours(26);
  h.boot();
  h.register_cluster();
  auto policy = ControllerHarness::quick_policy();
  policy.gates.certificate_margin_ms = std::int64_t{24} * 3'600'000;
  const auto run = h.start_scavenge(policy);
  // n2 takes three hours; then less than the margin of a day is left to the leader's certificate.
  ASSERT_TRUE(h.run_until([&] { return h.cluster.node("n2").last_finished.has_value(); },
                          std::chrono::hours(5)));
  h.run_until([] { return false; }, std::chrono::hours(1));
  EXPECT_EQ(h.state(run).status, RunStatus::kWaiting);
  EXPECT_EQ(h.cluster.node("n3").scavenge_starts, 0);
  EXPECT_THAT(h.state(run).reason, HasSubstr("the certificate of its node expires at"));
  EXPECT_THAT(h.state(run).steps.at("scavenge-n3").gates, HasSubstr("certificate-expires"));
  ends["10.0.0.1"] = hours(24 * 365);
  ASSERT_TRUE(h.run_to_end(run, std::chrono::hours(24)));
  EXPECT_EQ(h.state(run).status, RunStatus::kDone) << h.state(run).reason;
}

/// Each node's certificate lasts a year, and so does what vouches for it.
class Issuers : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::seconds(5);
    h_.cluster.scavenge_takes = std::chrono::hours(3);
    h_.scheme = "https";
    h_.served_certificate = [this](http::Endpoint) { return shown(*this); };
    intermediate_.subject = "CN=intermediate";
    intermediate_.issuer = "CN=root";
    intermediate_.not_after = in_hours(24 * 365);
    root_.subject = "CN=root";
    root_.issuer = "CN=root";
    root_.fingerprint = "aa";
    root_.not_after = in_hours(24 * 365);
    h_.roots = {root_};
    h_.boot();
    h_.register_cluster();
  }
  static net::awaitable<Result<http::CertificateInfo>> shown(Issuers& self) {
    http::CertificateInfo leaf;
    leaf.serial = self.serial_;
    leaf.issuer = "CN=intermediate";
    leaf.not_after = self.in_hours(24 * 365);
    leaf.issuers = {self.intermediate_};
    co_return leaf;
  }
  std::string in_hours(std::int64_t count) {
    return format_ticks(Ticks(h_.time.now().value() + count * 3'600 * kTicksPerSecond));
  }
  /// n2 takes three hours, and so would n3.
  void expect_waits_for(const std::string& subject) {
    ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").last_finished.has_value(); },
                             std::chrono::hours(5)));
    h_.run_until([] { return false; }, std::chrono::minutes(30));
    EXPECT_EQ(h_.cluster.node("n3").scavenge_starts, 0);
    EXPECT_THAT(h_.state(run_).reason, HasSubstr(subject + ", which vouches for"));
  }
  std::string serial_ = "01";
  http::CertificateInfo intermediate_;
  http::CertificateInfo root_;
  std::string run_;
  ControllerHarness h_;
};

TEST_F(Issuers, AnIntermediateThatEndsBeforeTheStepHoldsItBack) {
  run_ = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  intermediate_.not_after = in_hours(3);
  expect_waits_for("CN=intermediate");
}

TEST_F(Issuers, APausedRunResumesAfterTheCertificatesWereRenewed) {
  run_ = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  ASSERT_TRUE(h_.executor->pause(run_, "me", "").has_value());
  ASSERT_TRUE(h_.run_until([this] { return h_.state(run_).status == RunStatus::kPaused; },
                           std::chrono::minutes(5)));
  serial_ = "02";
  h_.run_until([] { return false; }, std::chrono::minutes(5));
  const auto resumed = h_.wait_for(h_.executor->resume(run_, "me"));
  EXPECT_TRUE(resumed.has_value()) << resumed.error().message;
}

TEST_F(Issuers, ATrustedRootThatEndsBeforeTheStepHoldsItBackUnlessAYoungerOneHasItsName) {
  run_ = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  h_.roots[0].not_after = in_hours(3);
  expect_waits_for("CN=root");
  h_.roots.push_back(root_);
  ASSERT_TRUE(h_.run_to_end(run_, std::chrono::hours(24)));
  EXPECT_EQ(h_.state(run_).status, RunStatus::kDone) << h_.state(run_).reason;
}

TEST_F(GatesBeforeActing, WithoutMetricsWhetherAnIndexIsMergedIsNotSeenAndSaidSo) {
  node("n3").has_metrics = false;
  const auto made =
      h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_THAT((*made)->plan->notes,
              ::testing::Contains(HasSubstr("n3: whether its index is being merged cannot be")));
  const auto run = start();
  expect_done(run);
  const auto state = h_.state(run);
  EXPECT_THAT(state.steps.at("scavenge-n3").not_seen, HasSubstr("index-idle"));
  EXPECT_EQ(state.steps.at("scavenge-n2").not_seen, "[]");
}

TEST_F(GatesBeforeActing, AnElectionHoldsTheNextScavengeBackUntilItHasSettled) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.election_settle_ms = 180'000;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_until([this] { return node("n2").running.has_value(); }));
  ASSERT_TRUE(h_.run_until([this] { return !node("n2").running.has_value(); }));
  h_.cluster.elect("n1");  // again: another epoch
  const auto elected = h_.time.monotonic();
  ASSERT_TRUE(h_.run_until([this] { return node("n3").running.has_value(); }));
  EXPECT_GE(h_.time.monotonic() - elected, std::chrono::minutes(3));
  expect_done(run);
}

TEST_F(GatesBeforeActing, TheRunsOwnMoveOfTheLeaderHasToSettleForLess) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.election_settle_ms = 180'000;
  policy.limits.move_settle_ms = 2'000;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_until([this] { return node("n1").resigns > 0; }, std::chrono::minutes(30)));
  const auto resigned = h_.time.monotonic();
  ASSERT_TRUE(h_.run_until([this] { return node("n1").running.has_value(); }));
  EXPECT_GE(h_.time.monotonic() - resigned, std::chrono::seconds(2));
  EXPECT_LT(h_.time.monotonic() - resigned, std::chrono::seconds(60));
  expect_done(run);
}

TEST_F(GatesBeforeActing, AnElectionAfterTheRunsOwnMoveHasToSettleForMinutes) {
  auto policy = ControllerHarness::quick_policy();
  policy.limits.election_settle_ms = 180'000;
  policy.limits.move_settle_ms = 20'000;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(
      h_.run_until([&] { return h_.state(run).steps.at("resign-n1").status == StepStatus::kDone; },
                   std::chrono::minutes(30)));
  h_.cluster.elect(h_.cluster.leader()->name);  // the same one, in another epoch
  const auto elected = h_.time.monotonic();
  ASSERT_TRUE(h_.run_until([this] { return node("n1").running.has_value(); }));
  EXPECT_GE(h_.time.monotonic() - elected, std::chrono::minutes(3));
  expect_done(run);
}

// Tournament: agent lies (old version).
TEST_F(GatesBeforeActing, AgentLiesAboutItsVersion) {
  const auto plan = [this] {
    auto made =
        h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
    return made.has_value() && !made->has_value() ? made->error().refusals
                                                  : std::vector<planner::Refusal>();
  };
  node("n2").agent_version = "0.0.3";
  ASSERT_EQ(plan().size(), 1U);
  EXPECT_EQ(plan().front().code, "agent-too-old");
  EXPECT_EQ(plan().front().node, "n2");
  // It reports another version of its node than the node itself: it does not look after this node.
  node("n2").agent_version = "0.1.0";
  node("n2").agent_says_version = "23.10.1";
  ASSERT_EQ(plan().size(), 1U);
  EXPECT_EQ(plan().front().code, "agent-gone");
  EXPECT_THAT(plan().front().message, HasSubstr("23.10.1"));
  node("n2").agent_says_version.clear();
  expect_done(start());
}

}  // namespace
}  // namespace verger::controller
