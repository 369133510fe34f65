#include "nodeagent/certificates/lint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ranges>

#include "engine/base/clock.h"
#include "nodeagent/certificates/detail/builder.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"

/// Each broken input has its own message before anything is touched.
namespace verger::certificates {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kDayTicks = 86'400 * kTicksPerSecond;

/// What the certificate of a node says, where it is to be wrong.
struct Leaf {
  std::string common_name = std::string(kNodeCommonName);
  std::vector<std::string> hosts{};
  const char* usages = "critical,digitalSignature,keyAgreement";
  const char* extended = "serverAuth,clientAuth";
  std::int64_t from_days = -1;
  std::int64_t until_days = 365;
};

class Lint : public ::testing::Test {
 protected:
  struct Issuer {
    std::string certificates;
    Key key;
    [[nodiscard]] SigningAuthority signing() const {
      return {.certificates = certificates, .key = *private_key_text(key.get(), "")};
    }
  };
  Ticks days(std::int64_t count) const { return Ticks(now_.value() + count * kDayTicks); }

  Issuer root(const std::string& name, int until_days = 1000) const {
    auto key = *new_key(KeyType::kEcP256);
    auto made = make_root(*private_key_text(key.get(), ""), "",
                          {.kind = CertificateKind::kRoot,
                           .common_name = name,
                           .not_before = days(-10),
                           .not_after = days(until_days)});
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return {.certificates = made->certificates, .key = std::move(key)};
  }
  Issuer intermediate(const Issuer& of, const std::string& name) const {
    auto key = *new_key(KeyType::kEcP256);
    const CertificateTerms terms{.kind = CertificateKind::kIntermediate,
                                 .common_name = name,
                                 .not_before = days(-5),
                                 .not_after = days(900)};
    const auto request = make_request(*private_key_text(key.get(), ""), "", terms);
    auto made = issue(*request, terms, of.signing());
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return {.certificates = made->certificates, .key = std::move(key)};
  }
  /// Signed by hand, so that it can be wrong.
  std::string sign(const EVP_PKEY* key, const Issuer& by, const Leaf& leaf) const {
    const auto issuer = read_certificate(by.certificates);
    auto made =
        begin_certificate(const_cast<EVP_PKEY*>(key), days(leaf.from_days), days(leaf.until_days));
    X509* out = made->get();
    EXPECT_TRUE(set_common_name(X509_get_subject_name(out), leaf.common_name).has_value());
    X509_set_issuer_name(out, X509_get_subject_name(issuer->get()));
    EXPECT_TRUE(add_extension(out, issuer->get(), NID_key_usage, leaf.usages).has_value());
    EXPECT_TRUE(add_extension(out, issuer->get(), NID_ext_key_usage, leaf.extended).has_value());
    const AlternativeNames names(GENERAL_NAMES_new());
    for (const auto& host : leaf.hosts) {
      EXPECT_TRUE(add_host(names.get(), host).has_value());
    }
    EXPECT_TRUE(add_alternative_names(out, names.get()).has_value());
    X509_sign(out, by.key.get(), EVP_sha256());
    return *to_pem(out);
  }
  void put(LintNode& node, const Issuer& by, Leaf leaf) const {
    if (leaf.hosts.empty()) {
      leaf.hosts = node.addresses;
    }
    const auto key = *new_key(KeyType::kEcP256);
    node.next.certificate = {.path = node.name + "/node.crt", .content = sign(key.get(), by, leaf)};
    node.next.key = FileSeen{
        .path = node.name + "/node.key", .content = *private_key_text(key.get(), ""), .mode = 0600};
  }
  /// Three nodes that show certificates of `ca_`, with good new ones of it.
  Lint() {
    for (const auto* number : {"1", "2", "3"}) {
      LintNode node{.name = std::string("n") + number,
                    .version = "24.6.0",
                    .addresses = {std::string("10.0.0.") + number,
                                  std::string("n") + number + ".example.com"},
                    .loads_ec_keys = true};
      put(node, ca_, {});
      node.served = ServedNow{.chain = node.next.certificate.content};
      put(node, ca_, {});
      node.next.roots = {{.path = "ca/ca.crt", .content = ca_.certificates}};
      input_.nodes.push_back(std::move(node));
    }
    input_.now = now_;
  }
  LintNode& n1() { return input_.nodes.front(); }
  void trust_everywhere(const std::string& roots) {
    for (auto& node : input_.nodes) {
      node.next.roots = {{.path = "ca/ca.crt", .content = roots}};
    }
  }
  std::vector<std::string> codes(Severity severity = Severity::kError) const {
    std::vector<std::string> out;
    for (const auto& finding : lint(input_).findings) {
      EXPECT_FALSE(finding.message.empty() || finding.next.empty()) << finding.code;
      if (finding.severity == severity) {
        out.push_back(finding.code);
      }
    }
    return out;
  }
  std::string message() const {
    const auto report = lint(input_);
    return report.findings.empty() ? "" : report.findings.front().message;
  }
  Ticks now_ = *parse_ticks("2026-03-01T12:00:00Z");
  Issuer ca_ = root("Root");
  LintInput input_;
};

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

TEST_F(Lint, AKeyThatStaysOnItsNodeIsNotAskedFor) {
  n1().next.key.reset();
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, ANewCaWithoutTrustOverlap) {
  const auto fresh = root("New root");
  for (auto& node : input_.nodes) {
    put(node, fresh, {});
  }
  trust_everywhere(fresh.certificates);
  input_.others = {{.path = "old.crt", .content = ca_.certificates}};
  EXPECT_THAT(codes(), ElementsAre("trust-gap"));
  EXPECT_THAT(message(), AllOf(HasSubstr("refuse each other in 12 of 24 cases"),
                               HasSubstr("n1 (old) is refused by n2 (new)")));
  // With both roots among the new ones old nodes still refuse new leaves.
  for (auto& node : input_.nodes) {
    node.next.roots.push_back({.path = "ca/old.crt", .content = ca_.certificates});
  }
  EXPECT_THAT(message(), HasSubstr("refuse each other in 6 of 24 cases"));
  // Trusting both first is the way.
  trust_everywhere(fresh.certificates);
  input_.trust_first = true;
  EXPECT_THAT(codes(), IsEmpty());
  const auto stages = lint(input_).stages;
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_TRUE(std::ranges::all_of(stages, &TrustStage::holds));
}

TEST_F(Lint, ANewIntermediateOfTheSameRoot) {
  const auto old_one = intermediate(ca_, "Old intermediate");
  const auto new_one = intermediate(ca_, "New intermediate");
  for (auto& node : input_.nodes) {
    put(node, old_one, {});
    node.served->chain = node.next.certificate.content + old_one.certificates;
    put(node, new_one, {});
    node.next.certificate.content += new_one.certificates;
  }
  EXPECT_THAT(codes(), ElementsAre("trust-gap"));
  EXPECT_THAT(message(), AllOf(HasSubstr("refuse each other in 12 of 24 cases"),
                               HasSubstr("shows its leaf alone"),
                               HasSubstr("does not have the intermediate CN=")));
  input_.trust_first = true;
  EXPECT_THAT(codes(), IsEmpty());
  // A new leaf of the same intermediate needs no such way.
  input_.trust_first = false;
  for (auto& node : input_.nodes) {
    put(node, old_one, {});
    node.next.certificate.content += old_one.certificates;
  }
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, OfAFileOfRootsTheFirstCounts) {
  const auto other = root("Other root");
  trust_everywhere(ca_.certificates + other.certificates);
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_THAT(codes(Severity::kWarning),
              ElementsAre("root-file-several", "root-file-several", "root-file-several"));
  trust_everywhere(other.certificates + ca_.certificates);
  input_.others = {{.path = "ca.crt", .content = ca_.certificates}};
  EXPECT_THAT(codes(), ElementsAre("root-unknown", "root-unknown", "root-unknown"));
}

TEST_F(Lint, AKeyFileThatServersDoNotRead) {
  const auto key = n1().next.key->content;
  n1().next.key->content = "Bag Attributes\n" + key;
  EXPECT_THAT(codes(), ElementsAre("key-format"));
  n1().next.key->content = key + "\n";
  EXPECT_THAT(codes(), ElementsAre("key-format"));
  EXPECT_THAT(message(), HasSubstr("after its END line"));
  n1().next.key->content = key.substr(0, key.size() - 1);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, WhatANodeTrustsNowHasToBeKnown) {
  const auto fresh = root("New root");
  for (auto& node : input_.nodes) {
    put(node, fresh, {});
  }
  trust_everywhere(fresh.certificates);
  EXPECT_THAT(codes(), ElementsAre("served-roots-unknown"));
  for (auto& node : input_.nodes) {
    node.served->roots = ca_.certificates + fresh.certificates;
    node.next.roots.push_back({.path = "ca/old.crt", .content = ca_.certificates});
  }
  EXPECT_THAT(codes(), IsEmpty());
}

/// n1 was not read: what it trusts while the others are changed is not made up from the new roots.
TEST_F(Lint, ANodeThatWasNotReadIsNotKnownUntilItsNewLeaf) {
  const auto fresh = root("New root");
  for (auto& node : input_.nodes) {
    node.served->roots = ca_.certificates;
    put(node, fresh, {});
  }
  n1().served.reset();
  trust_everywhere(fresh.certificates);
  input_.trust_first = true;
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_THAT(codes(Severity::kWarning), ElementsAre("served-not-read"));
  const auto stages = lint(input_).stages;
  ASSERT_EQ(stages.size(), 3U);
  const auto seen = [](const TrustStage& stage, const std::string& from, const std::string& to) {
    std::vector<std::string> out;
    for (const auto& cell : stage.cells) {
      if (cell.from == from && cell.to == to) {
        out.push_back(fmt::format("{}, {}: {}", text_of(cell.from_state), text_of(cell.to_state),
                                  cell.known ? cell.holds() ? "yes" : "no" : "?"));
      }
    }
    return out;
  };
  EXPECT_THAT(seen(stages[0], "n2", "n1"),
              ElementsAre("old, not known: ?", "trusts both, not known: ?"));
  EXPECT_THAT(seen(stages[1], "n2", "n1"),
              ElementsAre("trusts both, not known: ?", "trusts both, new leaf: ?",
                          "new leaf, not known: ?", "new leaf, new leaf: yes"));
  EXPECT_THAT(seen(stages[1], "n1", "n2"),
              ElementsAre("not known, trusts both: ?", "not known, new leaf: ?",
                          "new leaf, trusts both: yes", "new leaf, new leaf: yes"));
  EXPECT_FALSE(stages[1].holds());
  EXPECT_TRUE(stages[2].holds());
}

TEST_F(Lint, NewCertificatesAloneAreComparedWhereNoNodeWasRead) {
  for (auto& node : input_.nodes) {
    node.served.reset();
  }
  EXPECT_THAT(codes(Severity::kWarning), IsEmpty());
  EXPECT_EQ(lint(input_).stages.front().cells.size(), 6U);
  n1().served = ServedNow{.chain = n1().next.certificate.content};
  EXPECT_THAT(codes(Severity::kWarning),
              ElementsAre("certificate-unchanged", "served-not-read", "served-not-read"));
}

TEST_F(Lint, NothingWouldChange) {
  n1().served->chain = n1().next.certificate.content;
  EXPECT_THAT(codes(Severity::kWarning), ElementsAre("certificate-unchanged"));
}

}  // namespace
}  // namespace verger::certificates
