#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::Not;

class AccessTest : public ::testing::Test {
 protected:
  ApiHarness a_;
};

TEST_F(AccessTest, BeforeTheFirstTokenTheBootstrapTokenMayAllAndThenNothing) {
  EXPECT_EQ(a_.call("GET", "/runs").status, 200);
  const auto first = a_.call("POST", "/tokens", {{"name", "eve"}, {"role", "viewer"}});
  EXPECT_EQ(first.status, 400) << "a viewer's first token would lock everybody out";
  EXPECT_FALSE(a_.bootstrap.dropped);
  const auto admin = a_.create_token("ann", "admin");
  EXPECT_TRUE(a_.bootstrap.dropped);
  const auto refused = a_.call("GET", "/runs");  // still with the bootstrap token
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.get("WWW-Authenticate"), "Bearer");
  EXPECT_FALSE(ApiHarness::json_of(refused).contains("bootstrap_token_file"));
  EXPECT_EQ(a_.call("GET", "/metrics").status, 401);
  EXPECT_EQ(a_.call("GET", "/health").status, 200);
  EXPECT_EQ(a_.call("GET", "/openapi.json").status, 200);
  a_.token = admin;
  EXPECT_EQ(a_.call("GET", "/runs").status, 200);
  a_.token = admin.substr(0, admin.size() - 1) + (admin.back() == '0' ? "1" : "0");
  EXPECT_EQ(a_.call("GET", "/runs").status, 401);
}

TEST_F(AccessTest, BeforeTheFirstTokenBeingOnThisMachineIsNotEnough) {
  a_.token.clear();
  const http::Headers nonce{{std::string(kBootstrapNonceHeader), "17"}};
  for (const auto* wrong : {"", "verger_bootstrap_", "verger_bootstrap_guessed"}) {
    a_.token = wrong;
    EXPECT_EQ(a_.call("GET", "/runs").status, 401) << wrong;
    EXPECT_EQ(a_.call("POST", "/tokens", {{"name", "eve"}, {"role", "admin"}}).status, 401);
  }
  const auto here = a_.call("GET", "/runs", nullptr, nonce);
  EXPECT_EQ(ApiHarness::json_of(here)["bootstrap_token_file"], a_.bootstrap.place());
  EXPECT_EQ(ApiHarness::json_of(here)["bootstrap_token_proof"],
            hmac_sha256(test::FixedBootstrapToken::kText, "17"));
  EXPECT_THAT(here.body, Not(HasSubstr(test::FixedBootstrapToken::kText)));
  a_.from = "10.0.0.7";
  const auto there = a_.call("GET", "/runs", nullptr, nonce);
  EXPECT_EQ(there.status, 401);
  EXPECT_FALSE(ApiHarness::json_of(there).contains("bootstrap_token_file"));
  EXPECT_THAT(there.body, HasSubstr("verger token create"));
}

TEST_F(AccessTest, ATokenThatWasPreparedIsTheFirstOneAndStaysItAfterARestart) {
  a_.crash();
  a_.bootstrap.prepared = FirstToken{.name = "ann", .id = "0123456789ab", .secret = "s3cret"};
  a_.boot();
  EXPECT_TRUE(a_.bootstrap.dropped);
  EXPECT_EQ(a_.call("GET", "/runs").status, 401) << "the bootstrap token opens nothing";
  a_.token = "verger_0123456789ab_s3cret";
  EXPECT_EQ(a_.get("/whoami")["name"], "ann");
  EXPECT_EQ(a_.get("/whoami")["role"], "admin");
  EXPECT_EQ(a_.get("/tokens")["tokens"][0]["created_by"], "vergerd init");
  // The file may be gone, or hold another one: the journal's counts.
  a_.crash();
  a_.bootstrap.prepared = FirstToken{.name = "eve", .id = "ba9876543210", .secret = "other"};
  a_.boot();
  EXPECT_EQ(a_.get("/tokens")["tokens"].size(), 1U);
  a_.token = "verger_ba9876543210_other";
  EXPECT_EQ(a_.call("GET", "/runs").status, 401);
}

TEST_F(AccessTest, ACallerSeesItsOwnNameAndRole) {
  a_.token = a_.create_token("ann", "admin");
  const auto viewer = a_.create_token("vic", "viewer");
  EXPECT_EQ(a_.get("/whoami"), (json{{"name", "ann"}, {"role", "admin"}, {"expires_at", nullptr}}));
  a_.token = viewer;
  EXPECT_EQ(a_.get("/whoami"),
            (json{{"name", "vic"}, {"role", "viewer"}, {"expires_at", nullptr}}));
  a_.token.clear();
  EXPECT_EQ(a_.call("GET", "/whoami").status, 401);
}

TEST_F(AccessTest, ARoleMayWhatTheRolesBeforeItMay) {
  a_.token = a_.create_token("ann", "admin");
  const auto admin = a_.token;
  const auto viewer = a_.create_token("vic", "viewer");
  const auto worker = a_.create_token("olga", "operator");
  const json plan{{"operation", "scavenge"}};

  a_.token = viewer;
  EXPECT_EQ(a_.call("GET", "/clusters/prod").status, 200);
  const auto refused = a_.call("POST", "/clusters/prod/plans", plan);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(ApiHarness::code_of(refused), "forbidden");
  EXPECT_THAT(ApiHarness::json_of(refused)["detail"].get<std::string>(),
              HasSubstr("vic has the role viewer"));
  a_.token = worker;
  const auto made = a_.call("POST", "/clusters/prod/plans", plan);
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(ApiHarness::json_of(made)["created_by"], "olga");
  EXPECT_EQ(a_.call("DELETE", "/clusters/prod").status, 403);
  EXPECT_EQ(a_.call("GET", "/tokens").status, 403);
  EXPECT_EQ(a_.call("GET", "/audit").status, 403);
  a_.token = admin;
  EXPECT_EQ(a_.call("GET", "/audit").status, 200);
}

TEST_F(AccessTest, ARevokedTokenOpensNothingAndTheLastAdminsStays) {
  a_.token = a_.create_token("ann", "admin");
  const auto worker = a_.create_token("olga", "operator");
  std::string id;
  std::string admin_id;
  for (const auto& token : a_.get("/tokens")["tokens"]) {
    (token["name"] == "olga" ? id : admin_id) = token["id"];
    EXPECT_FALSE(token.contains("hash"));
  }
  EXPECT_EQ(a_.call("DELETE", "/tokens/" + id).status, 204);
  EXPECT_EQ(ApiHarness::code_of(a_.call("DELETE", "/tokens/" + admin_id)), "last_admin");
  a_.token = worker;
  EXPECT_EQ(a_.call("GET", "/runs").status, 401);
}

TEST_F(AccessTest, TokensOutliveARestartAndTheirSecretsAreNowhere) {
  const auto secret = a_.create_token("ann", "admin");
  const auto inner = secret.substr(secret.rfind('_') + 1);
  a_.token = secret;
  const auto keyed =
      ApiHarness::json_of(a_.call("POST", "/tokens?x=1", {{"name", "eve"}, {"role", "viewer"}},
                                  {{"Idempotency-Key", "k"}}))["token"]
          .get<std::string>();
  a_.token.clear();
  for (const auto& event : *a_.h.journal->read_all(Sequence(0))) {
    EXPECT_THAT(event.data, Not(HasSubstr(inner)));
    EXPECT_THAT(event.data, Not(HasSubstr(keyed.substr(keyed.rfind('_') + 1))));
  }
  a_.crash();
  a_.boot();
  EXPECT_EQ(a_.call("GET", "/runs").status, 401);
  a_.token = secret;
  EXPECT_EQ(a_.call("GET", "/runs").status, 200);
}

TEST_F(AccessTest, NamesOfTokensThatAreGoodAreUnique) {
  a_.token = a_.create_token("ann", "admin");
  a_.create_token("bob", "viewer");
  const auto twice = a_.call("POST", "/tokens", {{"name", "bob"}, {"role", "operator"}});
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(ApiHarness::code_of(twice), "token_exists");
  for (const auto& token : a_.get("/tokens")["tokens"]) {
    if (token["name"] == "bob") {
      EXPECT_EQ(a_.call("DELETE", "/tokens/" + token["id"].get<std::string>()).status, 204);
    }
  }
  a_.create_token("bob", "operator");
}

TEST_F(AccessTest, ATokenIsRefusedOnceItHasExpired) {
  const auto soon = format_ticks(Ticks(a_.h.time.now().value() + 600 * kTicksPerSecond));
  const auto first =
      a_.call("POST", "/tokens", {{"name", "ann"}, {"role", "admin"}, {"expires_at", soon}});
  EXPECT_EQ(first.status, 400) << "then no token could create another";
  a_.token = a_.create_token("ann", "admin");
  const auto admin = a_.token;
  const auto made =
      a_.call("POST", "/tokens", {{"name", "bob"}, {"role", "admin"}, {"expires_at", soon}});
  ASSERT_EQ(made.status, 201) << made.body;
  for (const auto& token : a_.get("/tokens")["tokens"]) {
    if (token["name"] == "ann") {
      EXPECT_EQ(ApiHarness::code_of(a_.call("DELETE", "/tokens/" + token["id"].get<std::string>())),
                "last_admin")
          << "bob's does not last";
    }
  }
  a_.token = ApiHarness::json_of(made)["token"];
  EXPECT_EQ(a_.call("GET", "/runs").status, 200);
  a_.crash();
  a_.boot();
  EXPECT_EQ(a_.call("GET", "/runs").status, 200);
  const auto wait = [](test::VirtualTime& time) -> net::awaitable<bool> {
    co_await time.sleep_for(std::chrono::minutes(11));
    co_return true;
  };
  a_.h.wait_for(wait(a_.h.time));
  const auto late = a_.call("GET", "/runs");
  EXPECT_EQ(late.status, 401);
  EXPECT_THAT(late.body, HasSubstr("expired at " + soon));
  a_.token = admin;
  EXPECT_EQ(a_.call("POST", "/tokens", {{"name", "eve"}, {"role", "viewer"}, {"expires_at", soon}})
                .status,
            400);
  EXPECT_EQ(a_.call("POST", "/tokens", {{"name", "bob"}, {"role", "viewer"}}).status, 201);
}

TEST_F(AccessTest, AnEnrolmentThatIsNestedTooDeeplyIsRefusedBeforeItIsParsed) {
  a_.token.clear();
  std::string deep = "{\"token\":";
  deep.append(100, '[');
  const auto refused = a_.call("POST", "/agents/enrol", deep);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("nested deeper"));
}

TEST_F(AccessTest, APolicyWhoseCommandWouldNotBeRunIsRefused) {
  a_.crash();
  a_.admit_command = [](const std::string& program) -> Result<void> {
    return program == "tell" ? Result<void>{} : Result<void>(Error{Errc::kRefused, "not there"});
  };
  a_.boot();
  const auto with = [&](const std::string& program) {
    const auto yaml =
        "name: p\nclusters: [prod]\nnotifications: [{on: [done], command: [" + program + "]}]\n";
    EXPECT_EQ(a_.call("POST", "/policies/validate", {{"yaml", yaml}}).status,
              program == "tell" ? 200 : 422);
    return a_.call("PUT", "/policies/p", {{"yaml", yaml}});
  };
  const auto refused = with("/bin/sh");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(ApiHarness::code_of(refused), "policy_invalid");
  EXPECT_THAT(refused.body, HasSubstr("not there"));
  EXPECT_EQ(with("tell").status, 200);
}

}  // namespace
}  // namespace verger::controller
