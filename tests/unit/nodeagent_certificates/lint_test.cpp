#include "nodeagent/certificates/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ranges>

#include "tests/unit/nodeagent_certificates/lint_case.h"

/// Each broken input has its own message before anything is touched.
namespace verger::certificates {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Lint, PassesWhatIsGood) {
  const auto report = lint(input_);
  EXPECT_TRUE(report.passed());
  EXPECT_THAT(report.findings, IsEmpty());
  ASSERT_EQ(report.stages.size(), 1U);
  EXPECT_TRUE(report.stages.front().holds());
  EXPECT_EQ(report.stages.front().cells.size(), 6U * 4U) << "three nodes, old and new";
}

TEST_F(Lint, TheKeyOfAnotherCertificate) {
  n1().next.key->content = *new_private_key(KeyType::kEcP256, "");
  EXPECT_THAT(codes(), ElementsAre("key-mismatch"));
  n1().next.key->content = input_.nodes[1].next.key->content;
  EXPECT_THAT(message(), HasSubstr("key of the certificate of n2"));
}

TEST_F(Lint, Expired) {
  put(n1(), ca_, {.from_days = -9, .until_days = -1});
  EXPECT_THAT(codes(), ElementsAre("certificate-expired"));
}

TEST_F(Lint, NotYetValid) {
  put(n1(), ca_, {.from_days = 1});
  EXPECT_THAT(codes(), ElementsAre("certificate-not-yet-valid"));
}

TEST_F(Lint, EndsWithinTheWindowOrSoon) {
  put(n1(), ca_, {.until_days = 1});
  EXPECT_THAT(codes(Severity::kWarning), ElementsAre("certificate-ends-soon"));
  input_.window = std::chrono::hours(25);
  EXPECT_THAT(codes(), ElementsAre("certificate-ends-in-window"));
}

TEST_F(Lint, OutlivesItsCa) {
  put(n1(), ca_, {.until_days = 2000});
  EXPECT_THAT(codes(), ElementsAre("certificate-outlives-ca"));
}

TEST_F(Lint, TheClockOfOneNodeAnHourOff) {
  put(n1(), ca_, {.from_days = 0});
  n1().clock_ahead = -std::chrono::hours(1);
  EXPECT_THAT(codes(), ElementsAre("clock-differs"));
  EXPECT_THAT(message(), HasSubstr("3600 s behind"));
  n1().clock_ahead = std::chrono::hours(1);
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_THAT(codes(Severity::kWarning), ElementsAre("clock-off"));
}

TEST_F(Lint, AWrongCommonName) {
  n1().reserved_common_name = "*.db.example.com";
  n1().served.reset();
  put(n1(), ca_, {.common_name = "n1.example.com"});
  EXPECT_THAT(codes(), testing::Contains("common-name-mismatch"));
  n1().reserved_common_name = "";
  n1().version = "22.10.5";  // where the default is a fixed name
  EXPECT_THAT(codes(), testing::Contains("common-name-mismatch"));
}

TEST_F(Lint, AChangedCommonNameBefore2310) {
  for (auto& node : input_.nodes) {
    node.reserved_common_name = "*.db.example.com";
    put(node, ca_, {.common_name = "a.db.example.com"});
    node.served->chain = node.next.certificate.content;
    put(node, ca_, {.common_name = "b.db.example.com"});
  }
  EXPECT_THAT(codes(), IsEmpty()) << "24.6.0 takes it, and the pattern fits both";
  n1().version = "23.6.0";
  EXPECT_THAT(codes(), ElementsAre("common-name-changed"));
  n1().version = "";
  EXPECT_THAT(codes(), ElementsAre("common-name-changed"));
  n1().version = "23.10.0";
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, AChangedCommonNameWithoutAReservedOneIsSeenInTheMatrix) {
  for (auto& node : input_.nodes) {
    put(node, ca_, {.common_name = "other"});
  }
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_THAT(codes(Severity::kWarning),
              ElementsAre("common-name-window", "common-name-window", "common-name-window"));
  const auto stage = lint(input_).stages.front();
  EXPECT_FALSE(stage.holds());
  EXPECT_TRUE(std::ranges::all_of(
      stage.cells, [](const TrustCell& cell) { return cell.holds() || cell.common_name_only; }));
}

TEST_F(Lint, NodesOfOneSetWithDifferentCommonNames) {
  for (auto& node : input_.nodes) {
    node.served.reset();
  }
  put(n1(), ca_, {.common_name = "another"});
  EXPECT_THAT(codes(), testing::Contains("common-name-differs"));
}

TEST_F(Lint, TheNamesLackAnAddress) {
  put(n1(), ca_, {.hosts = {"10.0.0.1"}});
  EXPECT_THAT(codes(), ElementsAre("san-lacks-address"));
  EXPECT_THAT(message(), HasSubstr("n1.example.com"));
}

TEST_F(Lint, TwoNodesWithSwappedFiles) {
  std::swap(input_.nodes[0].next, input_.nodes[1].next);
  EXPECT_THAT(codes(), ElementsAre("files-swapped", "files-swapped"));
  EXPECT_THAT(message(), HasSubstr("a certificate for n2"));
}

TEST_F(Lint, TheChainLacksTheIntermediate) {
  const auto between = intermediate(ca_, "Between");
  put(n1(), between, {});
  EXPECT_THAT(codes(), ElementsAre("issuer-unknown")) << "it could be a root as well";
  input_.others = {{.path = "between/ca.crt", .content = between.certificates}};
  EXPECT_THAT(codes(), ElementsAre("chain-lacks-intermediate"));
  n1().next.certificate.content += between.certificates;
  EXPECT_THAT(codes(), ElementsAre("trust-gap")) << "the other nodes do not have it";
  for (auto& node : input_.nodes | std::views::drop(1)) {
    node.next.certificate.content += between.certificates;
  }
  input_.trust_first = true;
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, AnUnknownRoot) {
  const auto stranger = root("Stranger");
  put(n1(), stranger, {});
  EXPECT_THAT(codes(), ElementsAre("issuer-unknown"));
  input_.others = {{.path = "stranger/ca.crt", .content = stranger.certificates}};
  EXPECT_THAT(codes(), ElementsAre("root-unknown"));
}

TEST_F(Lint, ARootOfTheSameNameIsNotTheSameRoot) {
  put(n1(), root("Root"), {});
  EXPECT_THAT(codes(), ElementsAre("issuer-unknown"));
}

TEST_F(Lint, ACaWithoutTheCaFlag) {
  // A leaf signs another leaf.
  auto key = *new_key(KeyType::kEcP256);
  const Issuer no_ca{.certificates = sign(key.get(), ca_,
                                          {.common_name = "No CA",
                                           .hosts = {"ca.example.com"},
                                           .usages = "critical,digitalSignature,keyCertSign"}),
                     .key = std::move(key)};
  put(n1(), no_ca, {});
  n1().next.certificate.content += no_ca.certificates;
  EXPECT_THAT(codes(), ElementsAre("ca-flag-missing"));
}

TEST_F(Lint, WithoutClientOrServerUsage) {
  put(n1(), ca_, {.extended = "serverAuth"});
  EXPECT_THAT(codes(), ElementsAre("usage-client-missing"));
  n1().client_usage_disabled = true;
  EXPECT_THAT(codes(), ElementsAre("usage-client-missing")) << "24.6.0 cannot do without";
  for (auto& node : input_.nodes) {
    node.client_usage_disabled = true;
    node.version = "24.10.12";
  }
  EXPECT_THAT(codes(), IsEmpty());
  put(n1(), ca_, {.extended = "clientAuth"});
  EXPECT_THAT(codes(), ElementsAre("usage-server-missing"));
}

TEST_F(Lint, KeyUsageAsLaterVersionsWantIt) {
  put(n1(), ca_, {.usages = "critical,digitalSignature"});
  EXPECT_THAT(codes(), ElementsAre("key-usage-missing"));
  for (auto& node : input_.nodes) {
    node.version = "23.10.0";
  }
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, AFileThatCannotBeRead) {
  n1().next.certificate = {.path = "n1/node.crt", .unreadable = "Permission denied"};
  EXPECT_THAT(codes(), ElementsAre("file-unreadable"));
  n1().next.key = FileSeen{.path = "n1/node.key", .unreadable = "No such file"};
  EXPECT_THAT(codes(), ElementsAre("file-unreadable", "file-unreadable"));
}

TEST_F(Lint, TruncatedPem) {
  auto& certificate = n1().next.certificate.content;
  certificate.resize(certificate.size() - 40);
  EXPECT_THAT(codes(), ElementsAre("certificate-truncated"));
  auto& key = n1().next.key->content;
  key.resize(key.size() / 2);
  EXPECT_THAT(codes(), ElementsAre("certificate-truncated", "key-truncated"));
  certificate = "hello";
  EXPECT_THAT(codes(), ElementsAre("certificate-unreadable", "key-truncated"));
}

TEST_F(Lint, AnEncryptedKeyWithoutPassword) {
  const auto key = read_key(n1().next.key->content);
  n1().next.key->content = *private_key_text(key->get(), "secret");
  EXPECT_THAT(codes(), ElementsAre("key-encrypted"));
  n1().next.key_password = "wrong";
  EXPECT_THAT(codes(), ElementsAre("key-password-wrong"));
  n1().next.key_password = "secret";
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, Pkcs12WherePemIsExpected) {
  const auto key = read_key(n1().next.key->content);
  const auto bytes = pkcs12_of(key->get(), n1().next.certificate.content, "secret");
  n1().next.certificate.content = *bytes;
  n1().next.key->content = *bytes;
  EXPECT_THAT(codes(), ElementsAre("certificate-is-pkcs12", "key-is-pkcs12"));
}

TEST_F(Lint, AWeakOrForeignTypeOfKey) {
  n1().loads_ec_keys = false;
  EXPECT_THAT(codes(), ElementsAre("key-type"));
  n1().loads_ec_keys = true;
  const Key weak(EVP_RSA_gen(1024));
  n1().next.certificate.content =
      sign(weak.get(), ca_,
           {.hosts = n1().addresses, .usages = "critical,digitalSignature,keyEncipherment"});
  n1().next.key->content = *private_key_text(weak.get(), "");
  // Not even OpenSSL's own level would take it in a handshake.
  EXPECT_THAT(codes(), ElementsAre("key-weak"));
}

TEST_F(Lint, WhatDoesNotBelongIntoAFile) {
  n1().next.certificate.content += ca_.certificates;
  EXPECT_THAT(codes(), ElementsAre("chain-has-root"));
  n1().next.certificate.content = ca_.certificates;
  EXPECT_THAT(codes(), ElementsAre("leaf-is-ca"));
  put(n1(), ca_, {});
  n1().next.roots.push_back({.path = "ca/leaf.pem", .content = n1().next.certificate.content});
  EXPECT_THAT(codes(), ElementsAre("root-not-self-signed"));
  n1().next.roots.clear();
  EXPECT_THAT(codes(), ElementsAre("root-missing"));
}

TEST_F(Lint, ModeAndOwnerOfTheKey) {
  n1().next.key->mode = 0644;
  EXPECT_THAT(codes(), ElementsAre("file-mode"));
  n1().next.key->mode = 0600;
  n1().next.key->owner = 0;
  n1().owner = 999;
  EXPECT_THAT(codes(), ElementsAre("file-owner"));
}

TEST_F(Lint, AKeyOfRootThatTheServersGroupMayReadIsInOrder) {
  auto& key = *n1().next.key;
  key.mode = 0640;
  key.owner = 0;
  key.group = 70;
  n1().owner = 999;
  n1().groups = {999, 70};
  EXPECT_THAT(codes(), IsEmpty());
  key.mode = 0660;
  EXPECT_THAT(codes(), ::testing::Contains("file-mode")) << "the group may change it";
  key.mode = 0644;
  EXPECT_THAT(codes(), ::testing::Contains("file-mode")) << "and so may all others read it";
  key.mode = 0640;
  n1().groups = {999};
  EXPECT_THAT(codes(), ElementsAre("file-mode", "file-owner"));
  EXPECT_THAT(message(), HasSubstr("group 70"));
  n1().owner.reset();
  n1().groups.clear();
  const auto report = lint(input_);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings.front().severity, Severity::kWarning) << "whose group is not known";
}

TEST_F(Lint, AKeyThatStaysOnItsNodeIsNotAskedFor) {
  n1().next.key.reset();
  EXPECT_THAT(codes(), IsEmpty());
}

}  // namespace
}  // namespace verger::certificates
