#pragma once

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "nodeagent/certificates/detail/builder.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/lint.h"

namespace verger::certificates {

inline constexpr std::int64_t kDayTicks = 86'400 * kTicksPerSecond;

/// What the certificate of a node says, where it is to be wrong.
struct LeafTerms {
  std::string common_name = std::string(kNodeCommonName);
  std::vector<std::string> hosts{};
  const char* usages = "critical,digitalSignature,keyAgreement";
  const char* extended = "serverAuth,clientAuth";
  std::int64_t from_days = -1;
  std::int64_t until_days = 365;
};

/// Three nodes of one cluster, with good new certificates: a test makes one thing wrong.
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
  std::string sign(const EVP_PKEY* key, const Issuer& by, const LeafTerms& leaf) const {
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
  void put(LintNode& node, const Issuer& by, LeafTerms leaf) const {
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

}  // namespace verger::certificates
