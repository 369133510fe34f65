#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "controller/cli/cert/cert_batch.h"
#include "controller/cli/commands.h"
#include "nodeagent/certificates/certificate_details.h"
#include "tests/support/temp_directory.h"

/// `verger cert` on local files. There is no controller, and no command asks for one.
namespace verger::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string content_of_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

unsigned mode_of(const fs::path& path) {
  struct stat seen{};
  ::stat(path.c_str(), &seen);
  return seen.st_mode & 07777U;
}

class CertCommands : public ::testing::Test {
 protected:
  int cert(std::vector<std::string> words) {
    std::vector<std::string> all{"verger", "--controller", "https://no-such-controller.invalid",
                                 "cert"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<const char*> argv;
    for (const auto& word : all) {
      argv.push_back(word.c_str());
    }
    out_.str("");
    err_.str("");
    return run_verger(static_cast<int>(argv.size()), argv.data(), out_, err_);
  }
  std::string at(const std::string& name) const { return (directory_.path() / name).string(); }
  void make_ca() {
    ASSERT_EQ(cert({"create-ca", "--out", at("ca"), "--key-type", "ec-p256"}), 0) << err_.str();
  }
  std::vector<std::string> node(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{
        "create-node",    "--ca-certificate", at("ca/ca.crt"), "--ca-key", at("ca/ca.key"),
        "--ip-addresses", "127.0.0.1",        "--key-type",    "ec-p256",  "--out",
        at(out)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  certificates::CertificateDetails seen(const std::string& path) const {
    auto read = certificates::read_details(content_of_file(at(path)));
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return read ? read->front() : certificates::CertificateDetails{};
  }
  test::TempDirectory directory_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CertCommands, MakesACaAndANodeWithoutAController) {
  make_ca();
  EXPECT_EQ(mode_of(at("ca/ca.key")), 0600U);
  EXPECT_EQ(mode_of(at("ca/ca.crt")), 0644U);
  ASSERT_EQ(cert(node("node1", {"--dns-names", "n1.example.com,localhost"})), 0) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("wrote " + at("node1/node.key")),
                                HasSubstr("wrote " + at("node1/node.crt"))));
  const auto leaf = seen("node1/node.crt");
  EXPECT_EQ(leaf.info.common_name, "eventstoredb-node");
  EXPECT_THAT(leaf.info.names, ElementsAre("n1.example.com", "localhost", "127.0.0.1"));
  EXPECT_TRUE(leaf.is_node);
  EXPECT_EQ(mode_of(at("node1/node.key")), 0600U);
}

TEST_F(CertCommands, TakesTheKnownToolsOptionsWithOneHyphen) {
  ASSERT_EQ(cert({"create-ca", "-out", at("ca"), "-days", "30"}), 0) << err_.str();
  EXPECT_EQ(seen("ca/ca.crt").key, "RSA 2048");
  ASSERT_EQ(cert({"create-node", "-ca-certificate", at("ca/ca.crt"), "-ca-key=" + at("ca/ca.key"),
                  "-ip-addresses", "127.0.0.1,10.0.0.1", "-out", at("n"), "-name", "n",
                  "-common-name", "db.example.com", "--key-type", "ec-p256"}),
            0)
      << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("it ends with its CA"));
  EXPECT_EQ(seen("n/n.crt").info.common_name, "db.example.com");
  EXPECT_EQ(seen("n/n.crt").info.not_after, seen("ca/ca.crt").info.not_after);
}

TEST_F(CertCommands, NothingIsReplacedWithoutForce) {
  make_ca();
  ASSERT_EQ(cert(node("node1")), 0);
  const auto key = content_of_file(at("node1/node.key"));
  fs::remove(at("node1/node.crt"));  // a key alone is kept, too
  EXPECT_EQ(cert(node("node1")), 2);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("node.key is there already"), HasSubstr("--force")));
  EXPECT_EQ(content_of_file(at("node1/node.key")), key);
  EXPECT_FALSE(fs::exists(at("node1/node.crt")));
  EXPECT_EQ(cert(node("node1", {"--force"})), 0) << err_.str();
  EXPECT_NE(content_of_file(at("node1/node.key")), key);
}

TEST_F(CertCommands, ARequestIsSignedElsewhere) {
  make_ca();
  ASSERT_EQ(cert({"create-node", "--csr-only", "--ip-addresses", "10.0.0.7", "--key-type",
                  "ec-p256", "--out", at("n")}),
            0)
      << err_.str();
  EXPECT_EQ(mode_of(at("n/node.key")), 0600U);
  ASSERT_EQ(cert({"inspect", at("n/node.csr"), "-o", "json"}), 0) << err_.str();
  EXPECT_EQ(nlohmann::json::parse(out_.str()).at("names").at(0), "10.0.0.7");
  ASSERT_EQ(cert({"create-node", "--csr", at("n/node.csr"), "--ca-certificate", at("ca/ca.crt"),
                  "--ca-key", at("ca/ca.key"), "--out", at("signed")}),
            0)
      << err_.str();
  EXPECT_FALSE(fs::exists(at("signed/node.key")));
  EXPECT_THAT(seen("signed/node.crt").info.names, ElementsAre("10.0.0.7"));
}

TEST_F(CertCommands, PasswordsComeFromFilesAndEnvironment) {
  std::ofstream(at("password")) << "a secret\n";
  ASSERT_EQ(cert({"create-ca", "--out", at("ca"), "--key-type", "ec-p256", "--key-password-file",
                  at("password")}),
            0)
      << err_.str();
  EXPECT_THAT(content_of_file(at("ca/ca.key")), HasSubstr("ENCRYPTED"));
  EXPECT_EQ(cert(node("node1")), 64);
  EXPECT_THAT(err_.str(), HasSubstr("encrypted and no password"));
  ::setenv("CERT_TEST_PASSWORD", "a secret", 1);
  EXPECT_EQ(cert(node("node1", {"--ca-key-password-env", "CERT_TEST_PASSWORD",
                                "--pkcs12-password-file", at("password")})),
            0)
      << err_.str();
  EXPECT_EQ(mode_of(at("node1/node.p12")), 0600U);
  ::unsetenv("CERT_TEST_PASSWORD");
  EXPECT_EQ(cert(node("node2", {"--ca-key-password-env", "CERT_TEST_PASSWORD"})), 64);
  EXPECT_THAT(err_.str(), HasSubstr("CERT_TEST_PASSWORD"));
}

constexpr auto kBatch = R"(certificates:
  ca-certs:
    - {out: "@/root", key-type: ec-p256}
    - {out: "@/ca", cert-path: "@/root/ca.crt", key-path: "@/root/ca.key", key-type: ec-p256}
  node-certs:
    - out: "@/n1"
      ca-certificate: "@/ca/ca.crt"
      ca-key: "@/ca/ca.key"
      ip-addresses: "127.0.0.1, 10.0.0.1"
      dns-names: [n1.example.com]
      key-type: ec-p256
  user-certs:
    - {username: ouro, out: "@/ouro", ca-certificate: "@/ca/ca.crt", ca-key: "@/ca/ca.key",
       days: 10, key-type: ec-p256}
)";

TEST_F(CertCommands, ABatchMakesAuthoritiesNodesAndUsers) {
  std::string yaml = kBatch;
  for (auto found = yaml.find('@'); found != std::string::npos; found = yaml.find('@', found)) {
    yaml.replace(found, 1, directory_.path().string());
  }
  std::ofstream(at("certs.yml")) << yaml;
  ASSERT_EQ(cert({"create-batch", at("certs.yml")}), 0) << err_.str();
  EXPECT_EQ(seen("n1/node.crt").info.issuer, seen("ca/ca.crt").info.subject);
  EXPECT_EQ(certificates::read_details(content_of_file(at("n1/node.crt")))->size(), 2U)
      << "with its intermediate";
  EXPECT_THAT(seen("n1/node.crt").info.names,
              ElementsAre("n1.example.com", "127.0.0.1", "10.0.0.1"));
  EXPECT_EQ(seen("ouro/user-ouro.crt").info.common_name, "ouro");
  // Again: nothing is made, since one of the files is there.
  fs::remove_all(at("root"));
  EXPECT_EQ(cert({"create-certs", "-config-file", at("certs.yml")}), 2);
  EXPECT_FALSE(fs::exists(at("root"))) << err_.str();
  EXPECT_EQ(cert({"create-batch", at("certs.yml"), "--force"}), 0) << err_.str();
}

TEST(CertBatch, SaysInWhichLineWhatIsWrong) {
  const auto wrong = [](const std::string& yaml) {
    const auto read = parse_batch(yaml);
    return read ? "no error" : read.error().message;
  };
  EXPECT_EQ(wrong("ca-certs:\n - days: 5\n"),
            "line 2: out is missing: the directory of the new files");
  EXPECT_THAT(wrong("node-certs:\n - out: a\n   dnsnames: b\n"),
              AllOf(HasSubstr("line 3: dnsnames is unknown"), HasSubstr("dns-names")));
  EXPECT_THAT(wrong("ca-certs:\n - out: a\n   days: many\n"), HasSubstr("line 3: days"));
  EXPECT_THAT(wrong("node-certs:\n - out: a\n"), HasSubstr("--ca-certificate"));
  EXPECT_THAT(wrong("nodes: []\n"), HasSubstr("line 1: nodes is unknown"));
  EXPECT_THAT(wrong("{}"), HasSubstr("nothing to make"));
  EXPECT_THAT(wrong("a: [b"), HasSubstr("no YAML"));
}

TEST_F(CertCommands, RenewKeepsWhatTheCertificateSays) {
  make_ca();
  ASSERT_EQ(cert(node("node1", {"--dns-names", "n1.example.com", "--days", "90"})), 0);
  const auto renew = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"renew",         at("node1/node.crt"), "--ca-certificate",
                                   at("ca/ca.crt"), "--ca-key",           at("ca/ca.key")};
    words.insert(words.end(), more.begin(), more.end());
    return cert(words);
  };
  ASSERT_EQ(renew({}), 0) << err_.str();
  const auto before = seen("node1/node.crt");
  const auto after = seen("node1/renewed/node.crt");
  EXPECT_EQ(after.info.names, before.info.names);
  EXPECT_NE(after.info.serial, before.info.serial);
  EXPECT_EQ(after.key, "EC P-256");
  EXPECT_EQ(after.info.not_after.substr(0, 8), before.info.not_after.substr(0, 8));
  EXPECT_NE(content_of_file(at("node1/renewed/node.key")), content_of_file(at("node1/node.key")));
  ASSERT_EQ(renew({"--reuse-key", "--out", at("same")}), 0) << err_.str();
  EXPECT_EQ(content_of_file(at("same/node.key")), content_of_file(at("node1/node.key")));
}

TEST_F(CertCommands, InspectShowsWhatAnOperatorWants) {
  make_ca();
  ASSERT_EQ(cert(node("node1")), 0);
  ASSERT_EQ(cert({"inspect", at("node1/node.crt"), at("node1/node.key"), at("ca/ca.crt")}), 0)
      << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("node (server and client)"), HasSubstr("valid until"),
                                HasSubstr("serverAuth, clientAuth"), HasSubstr("root CA"),
                                HasSubstr("private key, EC P-256"), HasSubstr("(SHA-1)")));
  EXPECT_EQ(cert({"inspect", at("none.crt")}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("none.crt"));
  EXPECT_EQ(cert({"inspect"}), 64);
}

TEST_F(CertCommands, RefusesOptionsThatContradictEachOther) {
  EXPECT_EQ(cert({"create-node", "--ip-addresses", "127.0.0.1", "--out", at("n")}), 64);
  EXPECT_THAT(err_.str(), HasSubstr("--ca-certificate and --ca-key are missing"));
  EXPECT_EQ(cert({"create-ca", "--out", at("c"), "--ca-key", "x"}), 64);
  EXPECT_EQ(cert({"create-ca", "--out", at("c"), "--days", "0x"}), 64);
  EXPECT_EQ(cert({"create-user", "--username", "eventstoredb-node", "--ca-certificate", "c",
                  "--ca-key", "k"}),
            64);
  EXPECT_THAT(err_.str(), HasSubstr("common name of nodes"));
  EXPECT_FALSE(fs::exists(at("n")));
}

TEST_F(CertCommands, NamesTheOptionOrFileThatIsWrong) {
  const auto wrong = [this](std::vector<std::string> words) {
    EXPECT_EQ(cert(std::move(words)), 64);
    return err_.str();
  };
  make_ca();
  EXPECT_THAT(wrong({"create-ca", "--out", at("c"), "--days", "0"}),
              HasSubstr("--days takes 1 to 36500"));
  EXPECT_THAT(wrong({"create-ca", "--out", at("c"), "--days", "x"}),
              HasSubstr("--days takes a whole number, not \"x\""));
  EXPECT_THAT(wrong({"create-ca", "--out"}), HasSubstr("--out needs a value (TEXT)"));
  EXPECT_THAT(wrong({"create-ca", "--day", "5"}),
              HasSubstr("verger cert create-ca has no option --day; did you mean --days?"));
  EXPECT_THAT(wrong({"renew", "a", "b"}), HasSubstr("verger cert renew does not take \"b\""));
  EXPECT_THAT(wrong({"create-batch"}), HasSubstr("verger: FILE is required"));
  const auto with_ca = [this](const std::string& certificate, const std::string& key,
                              std::vector<std::string> more) {
    std::vector<std::string> out{
        "create-node", "--ca-certificate", at(certificate), "--ca-key", at(key), "--out", at("n")};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  EXPECT_THAT(wrong(with_ca("ca/ca.crt", "ca/ca.key", {})),
              HasSubstr("--ip-addresses or --dns-names is missing"));
  EXPECT_THAT(wrong(with_ca("ca/ca.crt", "ca/ca.key", {"--ip-addresses", "10.0.0.999"})),
              AllOf(HasSubstr("10.0.0.999"), HasSubstr("--dns-names")));
  EXPECT_THAT(wrong({"create-user", "--username", "a/b", "--ca-certificate", at("ca/ca.crt"),
                     "--ca-key", at("ca/ca.key")}),
              HasSubstr("--username a/b: its files cannot be called user-a/b"));
  EXPECT_THAT(wrong(with_ca("ca/ca.crt", "ca/ca.crt", {"--dns-names", "n1"})),
              HasSubstr(at("ca/ca.crt") + ": no PEM private key"));
  EXPECT_THAT(wrong(with_ca("ca/ca.key", "ca/ca.key", {"--dns-names", "n1"})),
              HasSubstr(at("ca/ca.key") + ": no PEM certificate"));
  EXPECT_THAT(wrong(with_ca("ca/ca.crt", "ca/ca.key", {"--csr", at("ca/ca.crt")})),
              HasSubstr(at("ca/ca.crt") + ": no PEM certificate request"));
  ASSERT_EQ(cert(node("node1")), 0);
  EXPECT_THAT(wrong({"renew", at("node1/node.crt")}),
              HasSubstr("--ca-certificate and --ca-key are missing: the authority that signs " +
                        at("node1/node.crt") + " anew"));
}

TEST_F(CertCommands, LintOfOneNodeHasNoMatrixAndTakesUrlsAlone) {
  make_ca();
  ASSERT_EQ(cert(node("set/node1")), 0);
  fs::create_directories(at("set/ca"));
  fs::copy_file(at("ca/ca.crt"), at("set/ca/ca.crt"));
  EXPECT_EQ(cert({"lint", at("set"), "--ec-keys"}), 0) << out_.str();
  EXPECT_THAT(out_.str(), ::testing::Not(HasSubstr("SHOWN BY")));
  EXPECT_EQ(cert({"lint", at("set"), "--node", "node1=127.0.0.1:2113"}), 64);
  EXPECT_THAT(err_.str(), HasSubstr("--node node1=127.0.0.1:2113: "));
  EXPECT_EQ(cert({"lint", at("set"), "--node", "node1=http://127.0.0.1:2113"}), 64);
  EXPECT_THAT(err_.str(), HasSubstr("it takes an https URL"));
  EXPECT_EQ(cert({"lint", at("none")}), 64);
  EXPECT_THAT(err_.str(), HasSubstr(at("none") + " is not a directory"));
  EXPECT_EQ(cert({"lint", at("set"), "--trusted-roots", at("none")}), 64);
  EXPECT_THAT(err_.str(), HasSubstr("--trusted-roots " + at("none") + ": there is no such file"));
  EXPECT_EQ(cert({"lint", at("set"), "--server-version", "newest"}), 64);
  EXPECT_THAT(err_.str(), HasSubstr("it takes a version, such as"));
}

TEST_F(CertCommands, LintSaysWhichFileAFolderLacks) {
  make_ca();
  ASSERT_EQ(cert(node("set/node1")), 0);
  fs::create_directories(at("set/ca"));
  fs::copy_file(at("ca/ca.crt"), at("set/ca/ca.crt"));
  fs::create_directories(at("set/node2"));
  fs::copy_file(at("set/node1/node.crt"), at("set/node1/older.crt"));
  EXPECT_EQ(cert({"lint", at("set"), "--ec-keys"}), 2);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("node2 has no .crt file"), HasSubstr("no .key file"),
                                HasSubstr("node1 has 2 .crt files, and takes one")));
}

TEST_F(CertCommands, LintKnowsTheGroupsOfTheServersUser) {
  make_ca();
  ASSERT_EQ(cert(node("set/node1")), 0);
  fs::create_directories(at("set/ca"));
  fs::copy_file(at("ca/ca.crt"), at("set/ca/ca.crt"));
  fs::permissions(at("set/node1/node.key"), fs::perms(0640));
  EXPECT_EQ(cert({"lint", at("set"), "--ec-keys"}), 0) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("file-mode"));
  EXPECT_EQ(cert({"lint", at("set"), "--ec-keys", "--owner", std::to_string(::getuid())}), 0)
      << out_.str();
  EXPECT_THAT(out_.str(), ::testing::Not(HasSubstr("file-mode")));
  fs::permissions(at("set/node1/node.key"), fs::perms(0644));
  EXPECT_EQ(cert({"lint", at("set"), "--ec-keys"}), 2);
}

}  // namespace
}  // namespace verger::cli
