// What the API says of the certificates of a cluster's nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "engine/base/digest.h"
#include "nodeagent/certificates/certificate_details.h"
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

TEST_F(CertificatesTest, ThatWereReplacedOnDiskAndNotReloadedAreSeen) {
  a_.crash();
  a_.h.scheme = "https";
  a_.h.cluster.certificates = std::make_unique<test::FakeCertificateCluster>(a_.h.time, 3);
  auto& fakes = *a_.h.cluster.certificates;
  a_.h.served_certificate =
      [&fakes](http::Endpoint at) -> net::awaitable<Result<http::CertificateInfo>> {
    const auto name = std::string("n") + at.host.back();
    const auto read = certificates::read_details(fakes.node(name).loaded.chain);
    if (!read) {
      co_return read.error();
    }
    co_return read->front().info;
  };
  a_.boot();
  ASSERT_TRUE(a_.h.registry->remove("prod").has_value());
  a_.h.register_cluster();
  fakes.node("n2").disk = fakes.leaf_of(fakes.authority, 2, 500);
  const auto of_user = [&fakes](int days) {
    return fakes
        .leaf_of(fakes.authority, 1, days,
                 [](certificates::CertificateTerms& terms) {
                   terms.kind = certificates::CertificateKind::kUser;
                   terms.common_name = "ouro";
                 })
        .chain;
  };
  fakes.node("n1").users = {{.path = "/users/ouro.crt", .pem = of_user(40)},
                            {.path = "/users/old.crt", .pem = of_user(5)},
                            {.path = "/users/gone.crt", .problem = "it is not there"}};

  const auto answer = a_.get("/clusters/prod/certificates");
  EXPECT_EQ(answer["nodes"][0]["file_differs"], false) << answer["nodes"][0].dump(1);
  EXPECT_EQ(answer["nodes"][1]["file_differs"], true);
  const auto& n2 = answer["nodes"][1];
  EXPECT_NE(n2["files"][0]["serial"], n2["served"][0]["serial"]);
  EXPECT_GT(n2["files"][0]["days_left"], n2["served"][0]["days_left"]);
  EXPECT_EQ(answer["nodes"][0]["files"].back()["kind"], "root");
  const auto& users = answer["nodes"][0]["users"];
  ASSERT_EQ(users.size(), 2U) << answer["nodes"][0].dump(1);
  EXPECT_EQ(users[0]["path"], "/users/ouro.crt");
  EXPECT_EQ(users[0]["kind"], "user");
  EXPECT_EQ(users[0]["subject"], "CN=ouro");
  EXPECT_EQ(answer["first_end"]["of"], "users");
  EXPECT_EQ(answer["first_end"]["kind"], "user");
  EXPECT_THAT(answer["nodes"][0]["not_known"].dump(),
              HasSubstr("certificates of users: /users/gone.crt: it is not there"));
  EXPECT_THAT(
      a_.call("GET", "/metrics").body,
      AllOf(HasSubstr(R"(verger_certificate_disk_differs{cluster="prod",node="n1"} 0)"),
            HasSubstr(R"(verger_certificate_disk_differs{cluster="prod",node="n2"} 1)"),
            HasSubstr(R"(kind="root",node="n1",of="files"} )"),
            HasSubstr(fmt::format(
                R"(kind="user",node="n1",of="users",subject="CN=ouro"}} {:.0f})",
                static_cast<double>(parse_ticks(users[1]["not_after"].get<std::string>())->value() -
                                    kUnixEpoch.value()) /
                    kTicksPerSecond))));
  a_.crash();
  a_.h.cluster.certificates.reset();
  a_.h.scheme = "http";
  a_.boot();
}

/// In front of the nodes: keeps the files that come to agents.
class FileKeeper final : public http::Client {
 public:
  explicit FileKeeper(http::Client& behind) : behind_(behind) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    if (!request.target.starts_with("/agent/v1/files/")) {
      co_return co_await behind_.send(std::move(to), std::move(request), deadline);
    }
    const auto sha = request.target.substr(16, 64);
    stored[to.host].push_back(request.body);
    http::Response out;
    out.headers.set("Content-Type", "application/json");
    out.body = json{{"sha256", sha},
                    {"bytes", request.body.size()},
                    {"storedAt", "2026-11-23T00:00:00.0000000Z"}}
                   .dump();
    co_return out;
  }
  std::map<std::string, std::vector<std::string>> stored;  ///< by host

 private:
  http::Client& behind_;
};

TEST_F(CertificatesTest, OfAFileForAnAgentNothingIsKeptButThatItCame) {
  FileKeeper keeper(a_.h.cluster);
  a_.crash();
  a_.h.client = &keeper;
  a_.boot();
  const std::string key = "-----BEGIN PRIVATE KEY-----\nMOSTSECRET\n-----END PRIVATE KEY-----\n";
  const auto sha = to_hex(sha256(as_bytes(key)));
  const auto path = "/clusters/prod/nodes/n2/files/";
  const auto answer = a_.call("PUT", path + sha, key);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(ApiHarness::json_of(answer)["bytes"], key.size());
  ASSERT_EQ(keeper.stored.size(), 1U);
  EXPECT_THAT(keeper.stored["10.0.0.2"], ::testing::ElementsAre(key));

  const auto other = a_.call("PUT", path + std::string(64, 'a'), key);
  EXPECT_EQ(other.status, 422);
  EXPECT_THAT(other.body, AllOf(HasSubstr("SHA-256"), Not(HasSubstr("MOSTSECRET"))));
  EXPECT_EQ(a_.call("PUT", "/clusters/prod/nodes/n9/files/" + sha, key).status, 404);
  EXPECT_EQ(a_.call("PUT", path + sha, std::string((1U << 20U) + 1, 'x')).status, 413);
  EXPECT_THAT(keeper.stored["10.0.0.2"], ::testing::SizeIs(1)) << "none of these was passed on";

  const auto events = a_.h.journal->read_all(Sequence(0), 10'000);
  ASSERT_TRUE(events.has_value());
  bool audited = false;
  for (const auto& event : *events) {
    EXPECT_THAT(event.data, Not(HasSubstr("MOSTSECRET"))) << event.stream;
    audited = audited || (event.stream == "audit" && event.data.find(sha) != std::string::npos);
  }
  EXPECT_TRUE(audited);
  a_.crash();
  a_.h.client = nullptr;
  a_.boot();
}

TEST_F(CertificatesTest, AFileForANodeWithoutAgentIsRefused) {
  register_tls(/*with_agents=*/false);
  const auto sha = to_hex(sha256(as_bytes("x")));
  EXPECT_EQ(ApiHarness::code_of(a_.call("PUT", "/clusters/tls/nodes/n1/files/" + sha, "x")),
            "no_agent");
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
