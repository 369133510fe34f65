// What is wrong with new certificates, nodes, agents or signers: nothing is touched, or all of it
// is restored and proven.
#include "tests/unit/controller_operations/certificate_rollout.h"

namespace verger::controller {
namespace {

using certificates::CertificateKind;
using certificates::CertificateTerms;
using test::CertificateRollout;
using test::FakeAuthority;
using test::FakeCertificateFiles;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CertificateTournament : public CertificateRollout {
 public:
  using CertificateRollout::certificates;
  using CertificateRollout::node;
  Ticks now() { return h_.time.now(); }

  /// A leaf of n2 signed by hand, so that it can be wrong.
  FakeCertificateFiles by_hand(const char* usages, const char* extended,
                               certificates::Key key) const {
    const auto& cluster = *h_.cluster.certificates;
    return {.chain = test::leaf_with_usages(cluster, 2, key, usages, extended),
            .key = *certificates::to_pem(key.get()),
            .roots = {{"ca.crt", cluster.authority.certificate}}};
  }
  void change_terms(const std::function<void(CertificateTerms&)>& change) {
    certificates().offer("n2", certificates().leaf_of(certificates().authority, 2, 365, change));
  }
  /// What the agent says of files that are no PEM.
  void cannot_read(const char* code) {
    auto files = certificates().node("n2").paths.at("/new/node.crt");
    files.chain.clear();
    certificates().offer("n2", files);
    certificates().node("n2").findings = {
        {.code = code, .where = "/new/node.crt", .message = "it cannot be used", .next = "see"}};
  }
};

/// One broken input, found before a plan is made.
struct Broken {
  const char* name;
  void (*strike)(CertificateTournament&);
  const char* refusal;
};
void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenInput : public CertificateTournament, public ::testing::WithParamInterface<Broken> {};

TEST_P(BrokenInput, IsRefusedBeforeAnythingIsTouched) {
  begin();
  offer(certificates().authority);
  GetParam().strike(*this);
  EXPECT_THAT(refusals(), Contains(GetParam().refusal));
  expect_untouched();
}

INSTANTIATE_TEST_SUITE_P(
    Tournament, BrokenInput,
    ::testing::Values(
        Broken{"KeyOfAnotherCertificate",
               [](CertificateTournament& t) {
                 auto files = t.certificates().node("n2").paths.at("/new/node.crt");
                 files.key = t.certificates().node("n3").disk.key;
                 t.certificates().offer("n2", files);
               },
               "key-mismatch n2"},
        Broken{"Expired",
               [](CertificateTournament& t) {
                 t.change_terms([](CertificateTerms& terms) {
                   terms.not_after = Ticks(terms.not_before.value() + kTicksPerSecond);
                 });
               },
               "certificate-expired n2"},
        Broken{"NotYetValid",
               [](CertificateTournament& t) {
                 t.change_terms([](CertificateTerms& terms) {
                   terms.not_before = Ticks(terms.not_before.value() + 86'400 * kTicksPerSecond);
                 });
               },
               "certificate-not-yet-valid n2"},
        Broken{"WrongCommonName",
               [](CertificateTournament& t) {
                 t.change_terms([](CertificateTerms& terms) { terms.common_name = "elsewhere"; });
               },
               "common-name-differs n1"},
        Broken{"ChangedCommonNameBefore2310",
               [](CertificateTournament& t) {
                 t.node("n2").version = "22.10.3";
                 t.change_terms([](CertificateTerms& terms) { terms.common_name = "elsewhere"; });
               },
               "common-name-changed n2"},
        Broken{"NamesLackAnAddress",
               [](CertificateTournament& t) {
                 t.change_terms([](CertificateTerms& terms) { terms.ip_addresses = {"10.9.9.9"}; });
               },
               "san-lacks-address n2"},
        Broken{"ChainLacksTheIntermediate",
               [](CertificateTournament& t) {
                 const auto& root = t.certificates().authority;
                 auto terms = t.certificates().terms_of(2, 900);
                 terms.kind = CertificateKind::kIntermediate;
                 terms.common_name = "middle";
                 terms.ip_addresses.clear();
                 terms.dns_names.clear();
                 const auto key =
                     *certificates::new_private_key(certificates::KeyType::kEcP256, "");
                 const FakeAuthority middle{.certificate = root.issue(key, terms), .key = key};
                 auto files = t.certificates().leaf_of(middle, 2);
                 files.chain.resize(files.chain.size() - middle.certificate.size());
                 files.roots = {{"ca.crt", root.certificate}};
                 t.certificates().offer("n2", files);
               },
               "issuer-unknown n2"},
        Broken{"UnknownRoot",
               [](CertificateTournament& t) {
                 auto files = t.certificates().leaf_of(FakeAuthority::make("foreign", t.now()), 2);
                 files.roots = {{"ca.crt", t.certificates().authority.certificate}};
                 t.certificates().offer("n2", files);
               },
               "issuer-unknown n2"},
        Broken{"NoClientUsage",
               [](CertificateTournament& t) {
                 t.certificates().offer(
                     "n2", t.by_hand("critical,digitalSignature,keyAgreement", "serverAuth",
                                     *certificates::new_key(certificates::KeyType::kEcP256)));
               },
               "usage-client-missing n2"},
        Broken{"NoServerUsage",
               [](CertificateTournament& t) {
                 t.certificates().offer(
                     "n2", t.by_hand("critical,digitalSignature,keyAgreement", "clientAuth",
                                     *certificates::new_key(certificates::KeyType::kEcP256)));
               },
               "usage-server-missing n2"},
        Broken{"WeakKey",
               [](CertificateTournament& t) {
                 t.certificates().offer("n2", t.by_hand("critical,digitalSignature,keyEncipherment",
                                                        "serverAuth,clientAuth",
                                                        certificates::Key(EVP_RSA_gen(1024))));
               },
               "key-weak n2"},
        Broken{"FileUnreadable", [](CertificateTournament& t) { t.cannot_read("file-unreadable"); },
               "file-unreadable n2"},
        Broken{"TruncatedPem",
               [](CertificateTournament& t) { t.cannot_read("certificate-truncated"); },
               "certificate-truncated n2"},
        Broken{"EncryptedKeyWithoutPassword",
               [](CertificateTournament& t) { t.cannot_read("key-encrypted"); },
               "key-encrypted n2"},
        Broken{"Pkcs12WherePemIsExpected",
               [](CertificateTournament& t) { t.cannot_read("certificate-is-pkcs12"); },
               "certificate-is-pkcs12 n2"},
        Broken{"SwappedFiles",
               [](CertificateTournament& t) {
                 auto& n2 = t.certificates().node("n2").paths;
                 auto& n3 = t.certificates().node("n3").paths;
                 std::swap(n2, n3);
               },
               "files-swapped n2"},
        Broken{"TheAgentCannotChangeThem",
               [](CertificateTournament& t) {
                 t.certificates().node("n2").change_problem = "/etc is not writable";
               },
               "agent-cannot-change n2"},
        Broken{"OneNodeDownBefore", [](CertificateTournament& t) { t.node("n2").up = false; },
               "not-served n2"},
        Broken{"ClockOfOneNodeOff",
               [](CertificateTournament& t) { t.node("n2").clock_ahead = std::chrono::hours(1); },
               "clock-skew n2"}),
    [](const auto& each) { return each.param.name; });

/// What strikes while the run is under way, or is only seen then.
struct Struck {
  const char* name;
  void (*strike)(CertificateTournament&);
  const char* reason;
};
void PrintTo(const Struck& struck, std::ostream* out) { *out << struck.name; }

class StruckRun : public CertificateTournament, public ::testing::WithParamInterface<Struck> {};

TEST_P(StruckRun, IsUndoneEverywhereAndProven) {
  begin();
  offer(certificates().authority);
  GetParam().strike(*this);
  const auto run = start();
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr(GetParam().reason));
}

TEST_P(StruckRun, IsUndoneWithANewRootAsWell) {
  begin();
  offer(FakeAuthority::make("new CA", h_.time.now()));
  GetParam().strike(*this);
  const auto run = start();
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(Tournament, StruckRun,
                         ::testing::Values(Struck{"OneNodesReloadFails",
                                                  [](CertificateTournament& t) {
                                                    t.certificates().node("n3").reload_fails_in =
                                                        api::CertificatePhase::kLeaf;
                                                  },
                                                  "no_effect"},
                                           Struck{"TheReloadIsAnsweredAndNothingChanges",
                                                  [](CertificateTournament& t) {
                                                    t.certificates().node("n3").reload_lies = true;
                                                  },
                                                  "a new connection shows the certificate"},
                                           Struck{"TheReloadOfTheLeaderFails",
                                                  [](CertificateTournament& t) {
                                                    t.certificates().node("n1").reload_fails_in =
                                                        api::CertificatePhase::kLeaf;
                                                  },
                                                  "no_effect"}),
                         [](const auto& each) { return each.param.name; });

TEST_F(CertificateTournament, AFailureInTheFirstOrTheLastPhaseUndoesAllOfThem) {
  begin();
  auto serial = 0;
  for (const auto phase : {api::CertificatePhase::kTrust, api::CertificatePhase::kDrop}) {
    SCOPED_TRACE(api::to_string(phase));
    offer(FakeAuthority::make("new CA " + std::to_string(++serial), h_.time.now()));
    certificates().node("n3").reload_fails_in = phase;
    const auto run = start();
    expect_undone(run);
    EXPECT_THAT(h_.state(run).reason, HasSubstr("no_effect"));
  }
}

TEST_F(CertificateTournament, OneNodesDiskIsFullWhileStaging) {
  begin();
  offer(certificates().authority);
  certificates().node("n3").disk_full = true;
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("No space left"));
  expect_untouched();
  EXPECT_EQ(report(run)["outcome"], "unchanged");
  for (const auto& [name, each] : certificates().nodes) {
    EXPECT_FALSE(each.change.has_value()) << name << " has kept what was staged";
  }
}

TEST_F(CertificateTournament, OneNodeRefusesTheOthersOnNewConnections) {
  begin();
  offer(certificates().authority);
  when("certificate_switch", "n1", [this] { certificates().node("n3").refuses_clients = true; });
  const auto run = start();
  // What refused the new ones accepts the former ones again.
  h_.run_until([&] { return certificates().node("n1").restores == 1; }, std::chrono::hours(1));
  certificates().node("n3").refuses_clients = false;
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("does not accept"));
}

TEST_F(CertificateTournament, ANodeThatDropsOutWhenConnectionsAreRecreated) {
  begin();
  offer(FakeAuthority::make("new CA", h_.time.now()));
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return certificates().node("n1").switches == 2; }));
  h_.run_until([] { return false; }, std::chrono::minutes(9));
  node("n3").up = false;
  h_.run_until([&] { return certificates().node("n1").restores > 0; }, std::chrono::minutes(5));
  node("n3").up = true;
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n3 is not alive"));
}

TEST_F(CertificateTournament, AShortElectionWhileItIsWatchedUndoesNothing) {
  begin();
  offer(certificates().authority);
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return certificates().node("n1").switches == 1; }));
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  node("n1").up = false;
  h_.cluster.elect("n2");
  h_.run_until([] { return false; }, std::chrono::seconds(10));
  node("n1").up = true;
  expect_changed(run);
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
  EXPECT_THAT(report(run)["notes"].dump(), HasSubstr("something was wrong 1 time, and over by "
                                                     "itself; last: n1 is not alive"));
}

TEST_F(CertificateTournament, OneNodeDiesBetweenStageAndSwitch) {
  begin();
  offer(certificates().authority);
  when("certificate_switch", "n2", [this] { node("n3").up = node("n3").agent_up = false; });
  const auto run = start();
  h_.run_until([&] { return certificates().node("n2").restores == 1; }, std::chrono::hours(1));
  const auto restored_at = h_.time.now();
  EXPECT_EQ(certificates().node("n2").restores, 1);
  node("n3").up = node("n3").agent_up = true;
  expect_undone(run);
  EXPECT_EQ(certificates().node("n3").switches, 0);
  const auto opened = parse_ticks(report(run)["first_switch_at"].get<std::string>());
  EXPECT_LT((restored_at.value() - opened->value()) / kTicksPerSecond, 600) << "inside the window";
}

TEST_F(CertificateTournament, ANodeThatCannotBeReachedIsNamedWithItsCommands) {
  begin();
  offer(certificates().authority);
  when("certificate_switch", "n3", [this] { node("n2").up = node("n2").agent_up = false; });
  const auto run = start();
  ASSERT_TRUE(h_.run_until([this] { return struck_; }));
  const auto opened = h_.time.now();
  const auto missed =
      AllOf(HasSubstr("the window of 600 s is over"), HasSubstr("by hand: on n2: "));
  ASSERT_TRUE(h_.run_until([&] {
    return std::exchange(h_.news, false) && ::testing::Value(h_.alerts(run), Contains(missed));
  }));
  EXPECT_LT((h_.time.now().value() - opened.value()) / kTicksPerSecond, 620) << "at once, loudly";
  EXPECT_FALSE(has_ended(h_.state(run).status));
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(3)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  const auto shown = report(run);
  EXPECT_EQ(shown["outcome"], "not-restored");
  EXPECT_EQ(shown["nodes"][1]["name"], "n2");
  EXPECT_EQ(shown["nodes"][1]["commands"][0], "on n2: mv leaf && reload");
  EXPECT_THAT(h_.alerts(run), Contains(HasSubstr("by hand: on n2: mv leaf && reload")));
  EXPECT_EQ(certificates().node("n3").disk, before_.at("n3").first) << "the others are restored";
}

TEST_F(CertificateTournament, AnAgentThatIsKilledBetweenSwitchAndReload) {
  begin();
  offer(certificates().authority);
  h_.cluster.switch_takes = std::chrono::seconds(5);
  when("certificate_switch", "n3", [this] { node("n3").agent_up = false; });
  const auto run = start();
  ASSERT_TRUE(h_.run_until([this] { return struck_; }));
  h_.run_until([] { return false; }, std::chrono::seconds(40));
  node("n3").agent_up = true;
  expect_changed(run);
}

TEST_F(CertificateTournament, AWindowThatIsTooShortIsRefused) {
  begin();
  offer(certificates().authority);
  planner::CertificatesPolicy wanted;
  wanted.window_ms = 20'000;
  EXPECT_THAT(refusals(policy_of(wanted)), Contains("window-too-short"));
  expect_untouched();
}

TEST_F(CertificateTournament, AWindowThatPassesUndoesWhatIsDone) {
  begin();
  offer(certificates().authority);
  h_.cluster.switch_takes = std::chrono::minutes(7);
  const auto run = start();
  expect_undone(run);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("window"));
}

TEST_F(CertificateTournament, ASigningCommandThatHangsTouchesNothing) {
  signer_->answer = [](const SigningOrder& order) -> Result<std::string> {
    return Error{Errc::kTimeout, "the signing command corp was killed at " + order.node};
  };
  begin();
  planner::CertificatesPolicy wanted;
  wanted.sign_command = "corp";
  wanted.authority = "";
  wanted.source = planner::CertificateSource::kCsr;
  wanted.key_type = planner::CertificateKey::kEcP256;
  const auto run = start(policy_of(wanted));
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("was killed"));
  expect_untouched();
  EXPECT_EQ(report(run)["outcome"], "unchanged");
}

TEST_F(CertificateTournament, ASigningCommandThatSignsForAnotherNameTouchesNothing) {
  signer_->answer = [this](const SigningOrder& order) -> Result<std::string> {
    auto terms = order.terms;
    terms.ip_addresses = {"10.9.9.9"};
    return signer_->authority.issue(order.request, terms);
  };
  begin();
  planner::CertificatesPolicy wanted;
  wanted.sign_command = "corp";
  wanted.key_type = planner::CertificateKey::kEcP256;
  const auto run = start(policy_of(wanted));
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_THAT(h_.state(run).reason,
              AllOf(HasSubstr("not what was requested"), HasSubstr("10.9.9.9")));
  expect_untouched();
  EXPECT_FALSE(certificates().node("n1").change.has_value());
}

TEST_F(CertificateTournament, FilesThatChangeAfterTheyWereCheckedAreNotStaged) {
  begin();
  offer(certificates().authority);
  when("certificate_stage", "n2",
       [this] { certificates().offer("n3", certificates().leaf_of(certificates().authority, 3)); });
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("not those that were looked at"));
  expect_untouched();
}

}  // namespace
}  // namespace verger::controller
