#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;

class Discovery : public ::testing::Test {
 protected:
  json discover(json body, int expected = 200) {
    const auto answer = a_.call("POST", "/discoveries", body);
    EXPECT_EQ(answer.status, expected) << answer.body;
    return ApiHarness::json_of(answer);
  }
  ApiHarness a_;
};

TEST_F(Discovery, ProposesTheMembersThatOneNodeKnowsAndTheProposalCanBeRegistered) {
  ASSERT_EQ(a_.call("DELETE", "/clusters/prod").status, 204);
  const auto found =
      discover({{"url", "http://10.0.0.2:2113"}, {"name", "orders"}, {"credentials", "prod"}});
  ASSERT_EQ(found["nodes"].size(), 3U);
  EXPECT_EQ(found["nodes"][0]["name"], "n1");
  EXPECT_EQ(found["nodes"][2]["url"], "http://10.0.0.3:2113");
  EXPECT_EQ(found["nodes"][2]["state"],
            a_.h.cluster.leader() == &a_.h.cluster.node("n3") ? "Leader" : "Follower");
  EXPECT_EQ(found["nodes"][2]["registered_in"], nullptr);
  EXPECT_EQ(found["nodes"][2]["agent"], nullptr) << "plain agents are on vergerd's machine alone";
  EXPECT_TRUE(a_.get("/clusters")["clusters"].empty()) << "a proposal registers nothing";
  EXPECT_EQ(a_.call("POST", "/clusters", found["registration"]).status, 201);
  EXPECT_EQ(a_.get("/clusters/orders")["nodes"].size(), 3U);
}

TEST_F(Discovery, SaysWhatIsInTheWay) {
  a_.h.cluster.node("n1").up = false;
  const auto found = discover({{"url", "http://10.0.0.2:2113"}});
  std::string notes;
  for (const auto& note : found["notes"]) {
    notes += note.get<std::string>() + "\n";
  }
  EXPECT_THAT(notes, HasSubstr("http://10.0.0.1:2113 is a node of cluster prod already"));
  EXPECT_THAT(notes, HasSubstr("http://10.0.0.1:2113 is not alive"));
  EXPECT_THAT(notes, HasSubstr("without credentials"));
  EXPECT_EQ(found["registration"]["name"], "NAME");

  EXPECT_EQ(discover({{"url", "http://10.0.0.1:2113"}}, 422)["code"], "cluster_unreachable");
  EXPECT_EQ(discover({{"url", "ftp://x"}}, 400)["code"], "bad_request");
  EXPECT_EQ(discover({{"url", "http://10.0.0.2:2113"}, {"agent_port", 0}}, 400)["code"],
            "bad_request");
}

/// Looks at every port but one as at an agent that has enrolled.
struct AgentsLook {
  static net::awaitable<Result<http::CertificateInfo>> at(http::Endpoint where) {
    if (where.host == "10.0.0.2") {
      co_return Error{Errc::kUnavailable, "connection refused"};
    }
    http::CertificateInfo shown;
    shown.uris = {"urn:verger:agent:orders/" + where.host};
    co_return shown;
  }
};

TEST_F(Discovery, FindsAgentsByTheCertificateThatTheyShow) {
  a_.crash();
  a_.h.served_certificate = AgentsLook::at;
  a_.boot();
  const auto found = discover({{"url", "http://10.0.0.2:2113"}, {"agent_port", 3114}});
  EXPECT_EQ(found["nodes"][0]["agent"], "https://10.0.0.1:3114");
  EXPECT_EQ(found["nodes"][0]["agent_enrolled_as"], "orders/10.0.0.1");
  EXPECT_EQ(found["nodes"][1]["agent"], nullptr);
  EXPECT_EQ(found["registration"]["nodes"][2]["agent"], "https://10.0.0.3:3114");
}

}  // namespace
}  // namespace verger::controller
