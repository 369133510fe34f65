// What `verger cert rollout --from` reads, and what it refuses before a file leaves the machine.
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "controller/cli/cert/cert_lint.h"
#include "controller/cli/cert/cert_set.h"
#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "tests/support/temp_directory.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CertRollout : public ::testing::Test {
 protected:
  void SetUp() override {
    verger_cert({"create-ca", "--out", at("ca")});
    for (const auto* node : {"n1", "n2"}) {
      verger_cert({"create-node", "--ca-certificate", at("ca/ca.crt"), "--ca-key", at("ca/ca.key"),
                   "--ip-addresses", "127.0.0.1", "--out", at(node)});
    }
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  static void verger_cert(std::vector<std::string> arguments) {
    std::vector<const char*> all{"verger", "cert"};
    for (const auto& each : arguments) {
      all.push_back(each.c_str());
    }
    std::ostringstream out;
    std::ostringstream err;
    ASSERT_EQ(run_verger(static_cast<int>(all.size()), all.data(), out, err), kDone) << err.str();
  }
  certificates::LintInput read() {
    std::vector<std::string> notes;
    LintOptions options;
    options.directory = directory_.path().string();
    auto input = gather(options, system_clock().now(), notes);
    EXPECT_TRUE(input.has_value()) << input.error().message;
    return *std::move(input);
  }
  std::vector<std::string> problems(const std::vector<NodeOfCluster>& nodes) {
    return set_problems(read(), "DIR", "orders", nodes);
  }
  static std::string text_of_path(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  test::TempDirectory directory_;
};

TEST_F(CertRollout, BringsOfEachNodeCertificateKeyAndRootsAndOneManifest) {
  const std::vector<NodeOfCluster> nodes{{"n1", true}, {"n2", true}};
  EXPECT_THAT(problems(nodes), IsEmpty());
  const auto set = make_set(read());
  ASSERT_EQ(set.files.size(), 2U);
  const auto manifest = json::parse(set.manifest.content);
  EXPECT_EQ(set.manifest.sha256, to_hex(sha256(as_bytes(set.manifest.content))));
  for (const auto* node : {"n1", "n2"}) {
    std::map<std::string, std::string> contents;
    for (const auto& file : set.files.at(node)) {
      EXPECT_EQ(file.sha256, to_hex(sha256(as_bytes(file.content))));
      contents[file.sha256] = file.content;
    }
    const auto& of_node = manifest.at("nodes").at(node);
    EXPECT_EQ(contents.at(of_node.at("certificate")),
              text_of_path(at(std::string(node) + "/node.crt")));
    EXPECT_EQ(contents.at(of_node.at("key")), text_of_path(at(std::string(node) + "/node.key")));
    ASSERT_EQ(of_node.at("roots").size(), 1U) << "the key of the CA stays";
    EXPECT_EQ(of_node.at("roots")[0].at("name"), "ca.crt");
    EXPECT_EQ(contents.at(of_node.at("roots")[0].at("sha256")), text_of_path(at("ca/ca.crt")));
    EXPECT_EQ(contents.size(), 3U);
  }
  EXPECT_THAT(set.manifest.content, Not(HasSubstr("PRIVATE KEY")));
}

TEST_F(CertRollout, SaysAllAtOnceWhatDoesNotFitTheCluster) {
  EXPECT_THAT(
      problems({{"n1", true}, {"n3", false}}),
      ElementsAre(HasSubstr("DIR has no folder n3: cluster orders has the node n3"),
                  HasSubstr("n3 of orders has no agent"),
                  HasSubstr("DIR/n2: cluster orders has no node n2; its nodes are: n1, n3")));
}

TEST_F(CertRollout, AMissingKeyAndOneThatOthersMayReadAreErrors) {
  std::filesystem::remove(at("n2/node.key"));
  EXPECT_THAT(problems({{"n1", true}, {"n2", true}}), Contains(HasSubstr("n2: ")));
  std::filesystem::permissions(at("n1/node.key"), std::filesystem::perms(0640));
  const auto report = certificates::lint(read());
  EXPECT_THAT(report.findings,
              Contains(::testing::Field(&certificates::Finding::code, "file-mode")));
  EXPECT_FALSE(report.passed());
}

}  // namespace
}  // namespace verger::cli
