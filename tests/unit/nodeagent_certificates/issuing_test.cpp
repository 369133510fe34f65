#include "nodeagent/certificates/issuing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/key.h"

namespace verger::certificates {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kDay = 86'400 * kTicksPerSecond;

std::string new_key_text(KeyType type = KeyType::kEcP256, const std::string& password = {}) {
  return *private_key_text(new_key(type)->get(), password);
}

class Issuing : public ::testing::Test {
 protected:
  CertificateTerms terms(CertificateKind kind, const std::string& name, int days) const {
    return {.kind = kind,
            .common_name = name,
            .not_before = now_,
            .not_after = Ticks(now_.value() + days * kDay)};
  }
  CertificateTerms node_terms(int days = 365) const {
    auto out = terms(CertificateKind::kNode, std::string(kNodeCommonName), days);
    out.dns_names = {"n1.example.com", "*.db.example.com"};
    out.ip_addresses = {"10.0.0.1", "::1"};
    return out;
  }
  SigningAuthority root(int days = 3650) const {
    const auto key = new_key_text();
    const auto made = make_root(key, "", terms(CertificateKind::kRoot, "Test root", days));
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return {.certificates = made->certificates, .key = key};
  }
  SigningAuthority intermediate(const SigningAuthority& of) const {
    const auto key = new_key_text();
    const auto wanted = terms(CertificateKind::kIntermediate, "Test intermediate", 1000);
    const auto made = issue(*make_request(key, "", wanted), wanted, of);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return {.certificates = made->certificates, .key = key};
  }
  static std::string error_of(const Result<NewCertificate>& result) {
    return result ? "no error" : result.error().message;
  }
  Ticks now_ = *parse_ticks("2026-03-01T12:00:00Z");
};

TEST_F(Issuing, ANodesCertificateHasWhatServersRequire) {
  const auto authority = root();
  for (const auto type : {KeyType::kEcP384, KeyType::kRsa2048}) {
    const auto key = new_key_text(type);
    const auto made = issue(*make_request(key, "", node_terms()), node_terms(), authority);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const auto seen = read_details(made->certificates);
    ASSERT_TRUE(seen.has_value() && seen->size() == 1) << "the root is not shown";
    const auto& leaf = seen->front();
    EXPECT_EQ(leaf.info.subject, "CN=eventstoredb-node");
    EXPECT_EQ(leaf.info.issuer, "CN=Test root");
    EXPECT_THAT(leaf.info.names,
                ElementsAre("n1.example.com", "*.db.example.com", "10.0.0.1", "::1"));
    EXPECT_THAT(leaf.extended_usages, ElementsAre("serverAuth", "clientAuth"));
    EXPECT_THAT(leaf.usages,
                ElementsAre("digitalSignature",
                            type == KeyType::kRsa2048 ? "keyEncipherment" : "keyAgreement"));
    EXPECT_TRUE(leaf.is_node);
    EXPECT_EQ(leaf.key, type == KeyType::kRsa2048 ? "RSA 2048" : "EC P-384");
    EXPECT_EQ(leaf.info.not_after, "2027-03-01T12:00:00Z");
    EXPECT_EQ(leaf.info.serial, made->serial);
  }
}

TEST_F(Issuing, AUsersCertificateIsNoNodes) {
  const auto authority = root();
  const auto wanted = terms(CertificateKind::kUser, "ouro", 10);
  const auto made = issue(*make_request(new_key_text(), "", wanted), wanted, authority);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const auto seen = read_details(made->certificates)->front();
  EXPECT_EQ(seen.info.common_name, "ouro");
  EXPECT_THAT(seen.extended_usages, ElementsAre("clientAuth"));
  EXPECT_FALSE(seen.is_node);
}

TEST_F(Issuing, ABundleHasTheIntermediatesAndNotTheRoot) {
  const auto top = root();
  const auto between = intermediate(top);
  const auto made = issue(*make_request(new_key_text(), "", node_terms()), node_terms(), between);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const auto seen = read_details(made->certificates);
  ASSERT_EQ(seen->size(), 2U);
  EXPECT_EQ(seen->at(1).info.subject, "CN=Test intermediate");
  EXPECT_TRUE(seen->at(1).is_authority);
  // The same where the authority's file has its root behind it.
  auto with_root = between;
  with_root.certificates += top.certificates;
  EXPECT_EQ(
      read_details(issue(*make_request(new_key_text(), "", node_terms()), node_terms(), with_root)
                       ->certificates)
          ->size(),
      2U);
}

TEST_F(Issuing, NothingOutlivesItsAuthority) {
  const auto authority = root(100);
  const auto request = *make_request(new_key_text(), "", node_terms());
  const auto made = issue(request, node_terms(365), authority);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_TRUE(made->ends_with_authority);
  EXPECT_EQ(made->not_after.value(), now_.value() + 100 * kDay);
  EXPECT_FALSE(issue(request, node_terms(99), authority)->ends_with_authority);
  auto late = node_terms();
  late.not_before = Ticks(now_.value() + 101 * kDay);
  EXPECT_THAT(error_of(issue(request, late, authority)), HasSubstr("renew it first"));
}

TEST_F(Issuing, RefusesAuthoritiesThatAreNone) {
  const auto authority = root();
  const auto key = new_key_text();
  const auto request = *make_request(key, "", node_terms());
  const auto leaf = issue(request, node_terms(), authority)->certificates;
  EXPECT_THAT(error_of(issue(request, node_terms(), {.certificates = leaf, .key = key})),
              HasSubstr("no certificate of an authority"));
  EXPECT_THAT(
      error_of(issue(request, node_terms(), {.certificates = authority.certificates, .key = key})),
      HasSubstr("not that of its certificate"));
  const auto between = intermediate(authority);
  EXPECT_THAT(error_of(issue(request, terms(CertificateKind::kIntermediate, "third", 10), between)),
              HasSubstr("path length 0"));
}

TEST_F(Issuing, RefusesTermsThatServersWouldRefuse) {
  const auto authority = root();
  const auto request = *make_request(new_key_text(), "", node_terms());
  const auto with = [&](auto change) {
    auto changed = node_terms();
    change(changed);
    return error_of(issue(request, changed, authority));
  };
  EXPECT_THAT(with([](auto& t) { t.dns_names = t.ip_addresses = {}; }),
              HasSubstr("by which others reach the node"));
  EXPECT_THAT(with([](auto& t) { t.ip_addresses = {"n1"}; }), HasSubstr("no IP address"));
  EXPECT_THAT(with([](auto& t) { t.dns_names = {"10.0.0.1"}; }), HasSubstr("an address"));
  EXPECT_THAT(with([](auto& t) { t.dns_names = {"a,DNS:b"}; }), HasSubstr("no DNS name"));
  EXPECT_THAT(with([](auto& t) { t.common_name = ""; }), HasSubstr("1 to 64"));
  EXPECT_THAT(with([](auto& t) { t.not_after = t.not_before; }), HasSubstr("never valid"));
}

TEST_F(Issuing, ARequestGoesToAForeignAuthorityAndBack) {
  const auto key = new_key_text();
  const auto request = make_request(key, "", node_terms());
  ASSERT_TRUE(request.has_value()) << request.error().message;
  const auto read = terms_of_request(*request);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->common_name, "eventstoredb-node");
  EXPECT_THAT(read->dns_names, ElementsAre("n1.example.com", "*.db.example.com"));
  EXPECT_THAT(read->ip_addresses, ElementsAre("10.0.0.1", "::1"));
  // Only the key is taken from the request.
  auto others = node_terms();
  others.dns_names = {"n2.example.com"};
  const auto made = issue(*request, others, root());
  EXPECT_THAT(read_details(made->certificates)->front().info.names,
              ElementsAre("n2.example.com", "10.0.0.1", "::1"));
}

TEST_F(Issuing, ACertificateIsRenewedFromWhatItSays) {
  const auto authority = root();
  const auto made = issue(*make_request(new_key_text(), "", node_terms()), node_terms(), authority);
  const auto node = terms_of_certificate(made->certificates);
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->kind, CertificateKind::kNode);
  EXPECT_EQ(node->common_name, kNodeCommonName);
  EXPECT_THAT(node->ip_addresses, ElementsAre("10.0.0.1", "::1"));
  EXPECT_EQ(node->not_after.value() - node->not_before.value(), 365 * kDay);
  EXPECT_EQ(terms_of_certificate(authority.certificates)->kind, CertificateKind::kRoot);
  EXPECT_EQ(terms_of_certificate(intermediate(authority).certificates)->kind,
            CertificateKind::kIntermediate);
  const auto user = terms(CertificateKind::kUser, "ouro", 10);
  EXPECT_EQ(terms_of_certificate(
                issue(*make_request(new_key_text(), "", user), user, authority)->certificates)
                ->kind,
            CertificateKind::kUser);
}

TEST_F(Issuing, AnEncryptedKeyNeedsItsPassword) {
  const auto key = new_key_text(KeyType::kEcP256, "a secret");
  EXPECT_THAT(key, HasSubstr("ENCRYPTED"));
  EXPECT_THAT(make_request(key, "", node_terms()).error().message, HasSubstr("no password"));
  EXPECT_THAT(make_request(key, "wrong", node_terms()).error().message,
              HasSubstr("is the password right"));
  EXPECT_TRUE(make_request(key, "a secret", node_terms()).has_value());
}

TEST_F(Issuing, Pkcs12HasKeyAndChain) {
  const auto between = intermediate(root());
  const auto key = new_key(KeyType::kEcP256);
  const auto request = make_request(*private_key_text(key->get(), ""), "", node_terms());
  const auto made = issue(*request, node_terms(), between);
  const auto bytes = pkcs12_of(key->get(), made->certificates, "secret");
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  EXPECT_FALSE(read_details(*bytes).has_value()) << "it is no certificate by itself";
  EXPECT_FALSE(
      pkcs12_of(new_key(KeyType::kEcP256)->get(), made->certificates, "secret").has_value())
      << "another key";
}

TEST(KeyTypes, HaveNamesThatAreRead) {
  for (const auto type : {KeyType::kRsa2048, KeyType::kRsa3072, KeyType::kRsa4096, KeyType::kEcP256,
                          KeyType::kEcP384}) {
    EXPECT_EQ(parse_key_type(text_of(type)).value(), type);
  }
  EXPECT_THAT(parse_key_type("dsa").error().message, HasSubstr("rsa-2048, rsa-3072"));
  for (const auto type : {KeyType::kRsa2048, KeyType::kEcP256, KeyType::kEcP384}) {
    const auto key = new_key(type);
    EXPECT_EQ(type_of(key->get()).value(), type);
    EXPECT_FALSE(is_weak(key->get()));
    EXPECT_EQ(is_rsa(key->get()), type == KeyType::kRsa2048);
  }
}

}  // namespace
}  // namespace verger::certificates
