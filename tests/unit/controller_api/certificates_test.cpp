// What the API says of the certificates of a cluster's nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::Not;

http::CertificateInfo certificate(std::string subject, std::string issuer, Ticks not_after) {
  http::CertificateInfo out;
  out.subject = std::move(subject);
  out.issuer = std::move(issuer);
  out.serial = "0A";
  out.fingerprint = "print of " + out.subject;
  out.not_before = "2024-01-01T00:00:00Z";
  out.not_after = format_ticks(not_after);
  return out;
}

/// A cluster "tls" beside the usual one, whose nodes show certificates.
class CertificatesTest : public ::testing::Test {
 protected:
  CertificatesTest() {
    a_.crash();
    a_.h.served_certificate =
        [this](http::Endpoint at) -> net::awaitable<Result<http::CertificateInfo>> {
      const auto found = shown_.find(at.url());
      if (found == shown_.end()) {
        co_return Error{Errc::kUnavailable, "no TLS there"};
      }
      co_return found->second;
    };
    a_.h.roots = {certificate("CN=root", "CN=root", in_days(300))};
    a_.boot();
  }
  Ticks in_days(int days) {
    return Ticks(a_.h.time.now().value() + days * 86'400 * kTicksPerSecond);
  }
  void register_tls(bool with_agents) {
    EXPECT_TRUE(a_.h.registry->remove("prod").has_value());
    ClusterConfig config;
    config.name = "tls";
    for (int i = 1; i <= 3; ++i) {
      const auto url = fmt::format("https://10.0.0.{}:2113", i);
      config.nodes.push_back(
          {.name = fmt::format("n{}", i),
           .url = url,
           .agent_url = with_agents ? fmt::format("https://10.0.0.{}:2114", i) : std::string()});
      shown_[url] = certificate(fmt::format("CN=n{}", i), "CN=root", in_days(20 + i));
    }
    EXPECT_TRUE(a_.h.registry->add(std::move(config)).has_value());
  }

  std::map<std::string, http::CertificateInfo> shown_;  ///< by URL
  ApiHarness a_;
};

TEST_F(CertificatesTest, AreShownAsServedWithTheirDaysAndWhatIsNotKnown) {
  register_tls(/*with_agents=*/false);
  shown_.erase("https://10.0.0.3:2113");
  const auto answer = a_.get("/clusters/tls/certificates");
  ASSERT_EQ(answer["nodes"].size(), 3U) << answer.dump(1);
  const auto& n1 = answer["nodes"][0];
  ASSERT_EQ(n1["served"].size(), 2U) << n1.dump(1);
  EXPECT_EQ(n1["served"][0]["kind"], "leaf");
  EXPECT_EQ(n1["served"][0]["subject"], "CN=n1");
  EXPECT_EQ(n1["served"][0]["days_left"], 20) << "whole days: the question takes a moment";
  EXPECT_EQ(n1["served"][1]["kind"], "root") << "as the controller trusts it";
  EXPECT_TRUE(n1["file_differs"].is_null());
  EXPECT_THAT(n1["not_known"].dump(), HasSubstr("it has no agent"));
  const auto& n3 = answer["nodes"][2];
  EXPECT_TRUE(n3["served"].empty());
  EXPECT_THAT(n3["not_known"].dump(), HasSubstr("what it serves: "));
  EXPECT_EQ(answer["first_end"]["node"], "n1");
  EXPECT_EQ(answer["first_end"]["of"], "node");
}

TEST_F(CertificatesTest, OfNodesWithoutTlsSayThat) {
  const auto answer = a_.get("/clusters/prod/certificates");
  EXPECT_THAT(answer["nodes"][0]["not_known"].dump(), HasSubstr("it has no TLS"));
  EXPECT_TRUE(answer["first_end"].is_null());
  EXPECT_EQ(a_.call("GET", "/clusters/nowhere/certificates").status, 404);
}

TEST_F(CertificatesTest, OfAnExpiredRootWithoutTheSameNameSayThatTheRootIsNotKnown) {
  register_tls(/*with_agents=*/false);
  shown_["https://10.0.0.1:2113"].issuer = "CN=stranger";
  const auto answer = a_.get("/clusters/tls/certificates");
  EXPECT_THAT(answer["nodes"][0]["not_known"].dump(),
              HasSubstr("none of the roots that vergerd trusts"));
  EXPECT_THAT(answer["nodes"][1]["not_known"].dump(), Not(HasSubstr("its root")));
}

TEST_F(CertificatesTest, AreMetricsWithTheirEnds) {
  register_tls(/*with_agents=*/false);
  a_.get("/clusters/tls/certificates");
  const auto text = a_.call("GET", "/metrics").body;
  EXPECT_THAT(text,
              AllOf(HasSubstr(R"(verger_certificate_not_after_seconds{cluster="tls",kind="leaf",)"
                              R"(node="n1",of="node"} )"),
                    HasSubstr(R"(verger_certificate_not_after_seconds{cluster="tls",kind="root",)"
                              R"(node="n3",of="node"} )")));
  EXPECT_THAT(text, Not(HasSubstr("verger_certificate_disk_differs{")))
      << "without agents nothing is known of files";
}

}  // namespace
}  // namespace verger::controller
