#include "nodeagent/daemon/tls_set.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"
#include "tests/support/temp_directory.h"

/// A reload as a server does it: node-interface.md, 4.5, and what servers log meanwhile.
namespace verger::agent {
namespace {

using certificates::CertificateKind;
using certificates::SigningAuthority;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class LoggedLines final : public Log {
 public:
  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) override {
    std::string line(message);
    if (level == LogLevel::kError) {
      line = "error: " + line;
      for (const auto& field : fields) {
        line += "; " + field.value;
      }
    }
    lines.push_back(std::move(line));
  }
  std::vector<std::string> take() { return std::exchange(lines, {}); }
  std::vector<std::string> lines;
};

SigningAuthority authority(CertificateKind kind, const std::string& name,
                           const SigningAuthority* of = nullptr) {
  const auto now = system_clock().now();
  const certificates::CertificateTerms terms{
      .kind = kind,
      .common_name = name,
      .not_before = Ticks(now.value() - kTicksPerSecond * 60),
      .not_after = Ticks(now.value() + kTicksPerSecond * 7200)};
  auto key = *certificates::new_private_key(certificates::KeyType::kEcP256, "");
  const auto made =
      of == nullptr ? certificates::make_root(key, "", terms)
                    : certificates::issue(*certificates::make_request(key, "", terms), terms, *of);
  return {.certificates = made->certificates, .key = std::move(key)};
}

class NodeTlsReload : public ::testing::Test {
 protected:
  NodeTlsReload() {
    std::filesystem::create_directory(path("roots"));
    put("roots/ca.crt", root_.certificates);
    issue("eventstoredb-node");
    files_ = {.certificate = path("node.crt"),
              .private_key = path("node.key"),
              .trusted_roots = path("roots"),
              .check_own_chain = true};
    auto loaded = NodeTls::load(files_, log_);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    tls_ = *std::move(loaded);
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  /// A new leaf of the intermediate, with its key.
  void issue(const std::string& common_name) {
    const auto now = system_clock().now();
    const certificates::CertificateTerms terms{
        .common_name = common_name,
        .ip_addresses = {"127.0.0.1"},
        .not_before = Ticks(now.value() - kTicksPerSecond * 60),
        .not_after = Ticks(now.value() + kTicksPerSecond * 3600)};
    key_ = *certificates::new_private_key(certificates::KeyType::kEcP256, "");
    const auto made =
        certificates::issue(*certificates::make_request(key_, "", terms), terms, between_);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    chain_ = made->certificates;
    write();
  }
  void write() const {
    put("node.crt", chain_);
    put("node.key", key_);
  }
  static std::string thumbprint(const std::string& pem) {
    return certificates::read_details(pem)->front().thumbprint;
  }
  std::string served() const { return tls_->clients()->certificate().serial; }
  /// That a reload keeps the former set, and the last line, which says why.
  std::string refusal() {
    const auto before = served();
    log_.take();
    EXPECT_FALSE(tls_->reload(files_).has_value());
    EXPECT_EQ(served(), before);
    EXPECT_EQ(tls_->calls()->certificate().serial, before);
    EXPECT_EQ(tls_->nodes()->certificate().serial, before);
    EXPECT_THAT(log_.lines, Not(::testing::Contains("All certificates successfully loaded.")));
    EXPECT_THAT(log_.lines.back(),
                HasSubstr("error: An error has occurred while reloading the configuration"));
    return log_.lines.back();
  }
  bool names_the_new_certificate() const {
    return std::ranges::any_of(log_.lines, [&](const std::string& line) {
      return line.contains("New thumbprint: \"" + thumbprint(chain_));
    });
  }

  test::TempDirectory directory_;
  LoggedLines log_;
  SigningAuthority root_ = authority(CertificateKind::kRoot, "Root");
  SigningAuthority between_ = authority(CertificateKind::kIntermediate, "Between", &root_);
  std::string chain_;
  std::string key_;
  http::TlsFiles files_;
  std::unique_ptr<NodeTls> tls_;
};

TEST_F(NodeTlsReload, SaysWhatAServerSaysInItsOrder) {
  const auto former = thumbprint(chain_);
  issue("eventstoredb-node");
  log_.take();
  ASSERT_TRUE(tls_->reload(files_).has_value());
  EXPECT_THAT(
      log_.take(),
      ElementsAre(
          "Loading the node's certificate(s) from file: \"" + path("node.crt") + "\"",
          "\"CertificateReservedNodeCommonName\" auto-configured to: \"eventstoredb-node\" based "
          "on "
          "certificate",
          "Loading the node's certificate. Subject: \"CN=eventstoredb-node\", Previous thumbprint: "
          "\"" +
              former + "\", New thumbprint: \"" + thumbprint(chain_) + "\"",
          "Loading intermediate certificate. Subject: \"CN=Between\", Thumbprint: \"" +
              thumbprint(between_.certificates) + "\"",
          "Loading trusted root certificates.",
          "Loading trusted root certificate file: \"" + path("roots/ca.crt") + "\"",
          "Loading trusted root certificate. Subject: \"CN=Root\", Thumbprint: \"" +
              thumbprint(root_.certificates) + "\"",
          "Certificate chain verification successful.", "All certificates successfully loaded.",
          "The node's configuration was successfully reloaded"));
}

TEST_F(NodeTlsReload, NamesANewCertificateThatItThenRefuses) {
  const auto former = thumbprint(chain_);
  issue("eventstoredb-node");
  std::filesystem::rename(path("roots/ca.crt"), path("ca.crt"));
  put("roots/other.crt", authority(CertificateKind::kRoot, "Other").certificates);
  EXPECT_THAT(refusal(), HasSubstr("unable to get local issuer"));
  EXPECT_TRUE(names_the_new_certificate()) << "servers do: only the last line counts";
  // The one in use is still the former.
  std::filesystem::rename(path("ca.crt"), path("roots/ca.crt"));
  log_.take();
  ASSERT_TRUE(tls_->reload(files_).has_value());
  EXPECT_THAT(log_.take(), ::testing::Contains(HasSubstr("Previous thumbprint: \"" + former)));
}

TEST_F(NodeTlsReload, FindsTheFaultOfTheNodesOwnFilesBeforeThatOfTheRoots) {
  put("roots/x.pem", "no certificate");
  EXPECT_THAT(refusal(), HasSubstr(path("roots/x.pem")));
  issue("somebody-else");
  files_.reserved_common_name = "eventstoredb-node";
  EXPECT_THAT(refusal(), HasSubstr("does not fit the reserved node common name"));
  EXPECT_FALSE(names_the_new_certificate());
  put("node.key", "no key");
  EXPECT_THAT(refusal(), HasSubstr(path("node.key")));
}

TEST_F(NodeTlsReload, OfEachFileOfRootsTheFirstCounts) {
  const auto other = authority(CertificateKind::kRoot, "Other").certificates;
  put("roots/ca.crt", other + root_.certificates);
  EXPECT_THAT(refusal(), HasSubstr("unable to get local issuer"));
  EXPECT_THAT(log_.lines, ::testing::Contains(HasSubstr("Only the first of the 2 certificates")));
  put("roots/ca.crt", root_.certificates + other);
  EXPECT_TRUE(tls_->reload(files_).has_value());
}

TEST_F(NodeTlsReload, NothingButTheKeyIsInTheKeyFile) {
  put("node.key", key_ + "\n");
  EXPECT_THAT(refusal(), HasSubstr("after its END line"));
  put("node.key", "node n1\n" + key_);
  EXPECT_THAT(refusal(), HasSubstr("before its BEGIN line"));
  put("node.key", key_.substr(0, key_.size() - 1));
  EXPECT_TRUE(tls_->reload(files_).has_value()) << "no newline at the end does no harm";
}

}  // namespace
}  // namespace verger::agent
