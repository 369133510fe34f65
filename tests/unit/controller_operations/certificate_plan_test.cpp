#include "nodeagent/certificates/certificate_details.h"
#include "tests/unit/controller_operations/certificate_rollout.h"

// What stands between a plan of new certificates and its run.
namespace verger::controller {
namespace {

using test::CertificateRollout;
using test::FakeAuthority;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class CertificatePlanTest : public CertificateRollout {
 protected:
  static http::CertificateInfo info_of(const FakeAuthority& authority) {
    return certificates::read_details(authority.certificate)->front().info;
  }
};

TEST_F(CertificatePlanTest, ARootThatVergerdDoesNotTrustIsRefused) {
  h_.roots = {info_of(certificates().authority)};
  begin();
  const auto other = FakeAuthority::make("new CA", h_.time.now());
  offer(other);
  EXPECT_THAT(refusals(),
              UnorderedElementsAre("controller-does-not-trust n1", "controller-does-not-trust n2",
                                   "controller-does-not-trust n3"));
  h_.roots.push_back(info_of(other));
  EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(CertificatePlanTest, FilesThatChangedSinceThePlanAreNotStaged) {
  begin();
  offer(certificates().authority);
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy_of(), "test"));
  ASSERT_TRUE(made && *made);
  offer(certificates().authority);  // others
  const auto run = h_.wait_for(h_.executor->apply((*made)->plan->hash, "test"));
  ASSERT_TRUE(run.has_value()) << run.error().error.message;
  ASSERT_TRUE(h_.run_to_end(*run));
  EXPECT_EQ(h_.state(*run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(*run).reason, HasSubstr("the files have changed since; nothing was touched; "
                                               "make the plan again"));
  expect_untouched();
}

TEST_F(CertificatePlanTest, AnAgentWithOtherFilesThanItsServerIsNoticed) {
  begin();
  offer(certificates().authority);
  node("n2").options = {{"Db", "/data"},
                        {"CertificateFile", "/etc/../etc/node.crt"},
                        {"CertificatePrivateKeyFile", "/etc/other.key"},
                        {"TrustedRootCertificatesPath", "/etc/ca"}};
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy_of(), "test"));
  ASSERT_TRUE(made && *made);
  EXPECT_THAT((*made)->plan->notes,
              ::testing::Contains(AllOf(HasSubstr("agent-other-files: n2: /etc/node.key: its agent "
                                                  "changes this key"),
                                        HasSubstr("name /etc/other.key"))));
  EXPECT_THAT((*made)->plan->notes, Not(::testing::Contains(HasSubstr("this certificate,"))));
}

TEST_F(CertificatePlanTest, AReservedNameThatOnlyTheServerKnowsCounts) {
  begin();
  offer(certificates().authority);
  node("n3").options = {{"Db", "/data"},
                        {"CertificateReservedNodeCommonName", "*.db.house.example"}};
  EXPECT_THAT(refusals(), ::testing::Contains("common-name-mismatch n3"));
}

TEST_F(CertificatePlanTest, ServersThatNeedNoClientUsageAreNotAskedForIt) {
  begin();
  offer(certificates().authority);
  for (int i = 1; i <= 3; ++i) {
    auto files = certificates().node(fmt_name(i)).paths.at("/new/node.crt");
    files.chain = test::leaf_with_usages(certificates(), i, *certificates::read_key(files.key),
                                         "critical,digitalSignature,keyAgreement", "serverAuth");
    certificates().offer(fmt_name(i), files);
    node(fmt_name(i)).version = "24.10.12";
    node(fmt_name(i)).options = {{"Db", "/data"}, {"DisableClientAuthEkuValidation", "True"}};
  }
  EXPECT_THAT(refusals(), ::testing::IsEmpty());
  node("n2").options["DisableClientAuthEkuValidation"] = "False";
  EXPECT_THAT(refusals(), ::testing::Contains("usage-client-missing n2"));
  node("n2").options["DisableClientAuthEkuValidation"] = "true";
  node("n2").version = "24.10.11";
  EXPECT_THAT(refusals(), ::testing::Contains("usage-client-missing n2"))
      << "that version has no such option";
}

}  // namespace
}  // namespace verger::controller
