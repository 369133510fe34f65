#include "tests/unit/controller_operations/certificate_rollout.h"

#include "controller/executor/plan_json.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::CertificateRollout;
using test::FakeAuthority;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CertificateRolloutTest : public CertificateRollout {
 protected:
  /// "n2:certificate_switch leaf" of each operation, in order.
  void note_operations() {
    h_.cluster.acted = [this](const test::FakeNode& to, const http::Request& request) {
      if (request.target != "/agent/v1/operations") {
        return;
      }
      const auto body = json::parse(request.body);
      const auto phase = body.at("parameters").value("phase", std::string());
      operations_.push_back(to.name + ":" + body.at("kind").get<std::string>() +
                            (phase.empty() ? "" : " " + phase));
    };
  }
  std::vector<std::string> operations_;
};

TEST_F(CertificateRolloutTest, TheSameRootChangesNodeAfterNodeAndTheLeaderLast) {
  begin();
  offer(certificates().authority);
  note_operations();
  const auto old_serials = certificates().serials();
  const auto run = start();
  expect_changed(run);
  std::erase_if(operations_, [](const auto& each) { return each.ends_with("_stage"); });
  EXPECT_THAT(operations_, ElementsAre("n2:certificate_switch leaf", "n3:certificate_switch leaf",
                                       "n1:certificate_switch leaf"));
  const auto shown = report(run);
  ASSERT_EQ(shown["nodes"].size(), 3U);
  for (const auto& node : shown["nodes"]) {
    const auto name = node["name"].get<std::string>();
    EXPECT_EQ(node["serial_before"], old_serials.at(name));
    EXPECT_EQ(node["serial_after"], certificates().node(name).serial());
    EXPECT_TRUE(node["switched"]);
  }
  EXPECT_LT(shown["seconds_to_proof"].get<double>(), 60.0);
  EXPECT_GE(shown["watched_seconds"].get<int>(), 660);
  EXPECT_THAT(shown["notes"].dump(), Not(HasSubstr("something was wrong")));
  EXPECT_EQ(shown["proofs"][0]["phase"], "leaf");
  // vergerd with each of three, and each of three with two others in both roles.
  EXPECT_EQ(shown["proofs"][0]["handshakes"], 15);
}

TEST_F(CertificateRolloutTest, ANewRootIsTrustedEverywhereFirstAndTheOldOneGoesLast) {
  begin();
  offer(FakeAuthority::make("new CA", h_.time.now()));
  note_operations();
  const auto run = start();
  expect_changed(run);
  std::vector<std::string> phases;
  for (const auto& each : operations_) {
    const auto phase = each.substr(each.find(' ') + 1);
    if (each.find(' ') != std::string::npos && (phases.empty() || phases.back() != phase)) {
      phases.push_back(phase);
    }
  }
  EXPECT_THAT(phases, ElementsAre("trust", "leaf", "drop"));
  for (const auto& [name, node] : certificates().nodes) {
    EXPECT_EQ(node.disk.roots, certificates().nodes.at(name).paths.begin()->second.roots);
  }
  EXPECT_EQ(report(run)["proofs"].size(), 3U);
}

TEST_F(CertificateRolloutTest, AChangedCommonNameIsTakenFrom2310On) {
  begin();
  offer(certificates().authority,
        [](certificates::CertificateTerms& terms) { terms.common_name = "node.db.example.com"; });
  expect_changed(start());
}

TEST_F(CertificateRolloutTest, AnAuthoritySignsRequestsOfKeysThatStayOnTheNodes) {
  begin();
  const auto run = start(csr_policy());
  expect_changed(run);
  for (const auto& [name, node] : certificates().nodes) {
    EXPECT_EQ(node.disk.key, node.requests.at(run)) << name;
    EXPECT_EQ(node.disk.roots, before_.at(name).first.roots);
  }
}

TEST_F(CertificateRolloutTest, AnAuthorityThatIsNewIsTrustedFirst) {
  signer_->authority = FakeAuthority::make("new CA", h_.time.now());
  begin();
  expect_changed(start(csr_policy()));
  for (const auto& [name, node] : certificates().nodes) {
    ASSERT_EQ(node.disk.roots.size(), 1U) << name;
    EXPECT_EQ(node.disk.roots.begin()->second, signer_->authority.certificate);
    EXPECT_THAT(node.disk.roots.begin()->first, HasSubstr("corp-"));
  }
}

/// A command whose authority is known once it has signed.
planner::Policy policy_of_command(bool new_authority) {
  planner::CertificatesPolicy wanted;
  wanted.sign_command = "step";
  wanted.new_authority = new_authority;
  wanted.key_type = planner::CertificateKey::kEcP256;
  auto out = test::ControllerHarness::quick_policy();
  out.operation = wanted;
  return out;
}

TEST_F(CertificateRolloutTest, ASigningCommandsNewRootIsTrustedFirstWhereThePolicySaysSo) {
  begin();
  signer_->authority = FakeAuthority::make("another CA", h_.time.now());
  const auto refused = start(policy_of_command(false));
  ASSERT_TRUE(h_.run_to_end(refused));
  EXPECT_EQ(h_.state(refused).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(refused).reason, HasSubstr("--new-authority"));
  expect_untouched();
  const auto run = start(policy_of_command(true));
  expect_changed(run);
  for (const auto& [name, node] : certificates().nodes) {
    ASSERT_EQ(node.disk.roots.size(), 1U) << name;
    EXPECT_EQ(node.disk.roots.begin()->second, signer_->authority.certificate);
  }
  EXPECT_THAT(report(run)["notes"].dump(), HasSubstr("new root: CN=another CA, SHA-256 "));
  // The next one has nothing new to trust, and says so with no step.
  before_ = certificates().all();
  expect_changed(start(policy_of_command(true)));
}

TEST_F(CertificateRolloutTest, ASigningCommandsRootThatVergerdDoesNotTrustTouchesNothing) {
  http::CertificateInfo trusted;
  trusted.subject = "CN=old CA";
  trusted.fingerprint = "the old one's";
  h_.roots = {trusted};
  begin();
  signer_->authority = FakeAuthority::make("another CA", h_.time.now());
  const auto run = start(policy_of_command(true));
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_THAT(h_.state(run).reason,
              AllOf(HasSubstr("vergerd does not trust the root \"CN=another CA\""),
                    HasSubstr("nothing was touched")));
  expect_untouched();
}

/// Everything that is logged.
class AllLines final : public Log {
 public:
  void write(LogLevel, std::string_view message, std::span<const LogField> fields) override {
    text += message;
    for (const auto& field : fields) {
      text += field.value;
    }
  }
  std::string text;
};

TEST_F(CertificateRolloutTest, NoKeyIsInJournalPlanReportRequestOrLog) {
  AllLines log;
  h_.log = &log;
  std::string requests;
  h_.cluster.acted = [&requests](const test::FakeNode&, const http::Request& request) {
    requests += request.target + request.body;
  };
  begin();
  const auto run = start(csr_policy());
  expect_changed(run);
  // A signer that fails, too, and whose command prints what it should not.
  signer_->answer = [this](const SigningOrder&) -> Result<std::string> {
    return signer_->authority.key;
  };
  const auto failed = h_.wait_for(h_.executor->make_plan("prod", csr_policy(), "test"));
  ASSERT_TRUE(failed && !*failed);
  auto all = log.text + failed->error().refusals.front().message + requests + report(run).dump() +
             snapshot_of(h_.state(run)).state + planner::text_of(*h_.state(run).plan);
  for (const auto& event : *h_.journal->read_all(Sequence(0), 1'000'000)) {
    all += event.data;
  }
  ASSERT_THAT(all, HasSubstr("BEGIN CERTIFICATE-----"));
  EXPECT_THAT(all, Not(HasSubstr("PRIVATE KEY")));
  const auto secret_of = [](const std::string& key) { return key.substr(40, 40); };
  EXPECT_EQ(all.find(secret_of(signer_->authority.key)), std::string::npos);
  for (const auto& [name, node] : certificates().nodes) {
    EXPECT_EQ(all.find(secret_of(node.disk.key)), std::string::npos) << name;
  }
}

TEST_F(CertificateRolloutTest, APauseWaitsUntilAllIsChanged) {
  begin();
  offer(certificates().authority);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return certificates().node("n2").switches == 1; }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  h_.run_until([&] { return h_.state(run).status == RunStatus::kPaused; },
               std::chrono::minutes(30));
  EXPECT_THAT(switches(), ::testing::Each(::testing::Pair(::testing::_, 1)))
      << "a pause leaves no cluster half-way";
  if (h_.state(run).status == RunStatus::kPaused) {
    ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  }
  expect_changed(run);
}

TEST_F(CertificateRolloutTest, ACancelledRunRestoresAllThatItChanged) {
  begin();
  offer(FakeAuthority::make("new CA", h_.time.now()));
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return certificates().node("n2").switches == 2; }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  const auto ended = h_.state(run);
  EXPECT_EQ(ended.status, RunStatus::kCancelled);
  expect_untouched();
  EXPECT_EQ(report(run)["outcome"], "undone");
  EXPECT_THAT(report(run)["notes"].dump(), ::testing::Not(::testing::HasSubstr("new root: ")));
  const auto proven = ended.steps.at("check-certificates").since;
  for (const auto& [id, step] : ended.steps) {
    EXPECT_GE(proven, step.since) << id << " was undone behind the proof of all";
  }
}

TEST_F(CertificateRolloutTest, NodesThatHaveThemAlreadyNeedNoRun) {
  begin();
  for (auto& [name, node] : certificates().nodes) {
    certificates().offer(name, node.disk);
  }
  EXPECT_THAT(refusals(), Contains("nothing-to-change"));
}

}  // namespace
}  // namespace verger::controller
