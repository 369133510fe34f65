#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::Not;

class AccessTest : public ::testing::Test {
 protected:
  std::string create(const std::string& name, const std::string& role) {
    const auto made = a_.call("POST", "/tokens", {{"name", name}, {"role", role}});
    EXPECT_EQ(made.status, 201) << made.body;
    return ApiHarness::json_of(made).value("token", std::string());
  }
  ApiHarness a_;
};

TEST_F(AccessTest, BeforeTheFirstTokenTheBootstrapTokenMayAllAndThenNothing) {
  EXPECT_EQ(a_.call("GET", "/runs").status, 200);
  const auto first = a_.call("POST", "/tokens", {{"name", "eve"}, {"role", "viewer"}});
  EXPECT_EQ(first.status, 400) << "a viewer's first token would lock everybody out";
  EXPECT_FALSE(a_.bootstrap.dropped);
  const auto admin = create("ann", "admin");
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

TEST_F(AccessTest, ARoleMayWhatTheRolesBeforeItMay) {
  a_.token = create("ann", "admin");
  const auto admin = a_.token;
  const auto viewer = create("vic", "viewer");
  const auto worker = create("olga", "operator");
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
  a_.token = create("ann", "admin");
  const auto worker = create("olga", "operator");
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
  const auto secret = create("ann", "admin");
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

TEST_F(AccessTest, EventsAreThoseThatTheRoleMaySee) {
  a_.token = create("ann", "admin");
  const auto admin = a_.token;
  const auto viewer = create("vic", "viewer");
  const auto worker = create("olga", "operator");
  a_.call("POST", "/clusters/prod/pause", {{"reason", "secret-reason"}},
          {{"Idempotency-Key", "k"}});
  const auto streams_of = [&](const std::string& token) {
    a_.token = token;
    std::set<std::string> out;
    const auto answer = a_.call("GET", "/events");
    EXPECT_THAT(answer.body, Not(HasSubstr("\"salt\"")));
    EXPECT_THAT(answer.body, Not(HasSubstr("answer-kept")));
    const auto page = ApiHarness::json_of(answer);
    EXPECT_EQ(page["next"], a_.h.journal->last_sequence()->value()) << "what is hidden is behind";
    for (const auto& event : page["events"]) {
      const std::string stream = event["stream"];
      out.insert(stream.substr(0, stream.find('/')));
    }
    return out;
  };
  EXPECT_EQ(streams_of(viewer), (std::set<std::string>{"cluster"}));
  EXPECT_EQ(streams_of(worker), (std::set<std::string>{"cluster"}));
  EXPECT_EQ(streams_of(admin), (std::set<std::string>{"audit", "cluster", "token"}));
}

TEST_F(AccessTest, ALongRunOfHiddenEventsIsNoEnd) {
  for (int i = 0; i < 1'100; ++i) {
    ASSERT_TRUE(
        a_.h.journal->append("audit", kAnyRevision, {NewEvent{"e"}}, a_.h.epoch).has_value());
  }
  ASSERT_TRUE(a_.h.journal->append("run/x", kAnyRevision, {NewEvent{"e"}}, a_.h.epoch).has_value());
  a_.token = create("ann", "admin");
  a_.token = create("vic", "viewer");
  const auto page = a_.get("/events?after=100");
  ASSERT_EQ(page["events"].size(), 1U);
  EXPECT_EQ(page["events"][0]["stream"], "run/x");
}

TEST_F(AccessTest, NamesOfTokensThatAreGoodAreUnique) {
  a_.token = create("ann", "admin");
  create("bob", "viewer");
  const auto twice = a_.call("POST", "/tokens", {{"name", "bob"}, {"role", "operator"}});
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(ApiHarness::code_of(twice), "token_exists");
  for (const auto& token : a_.get("/tokens")["tokens"]) {
    if (token["name"] == "bob") {
      EXPECT_EQ(a_.call("DELETE", "/tokens/" + token["id"].get<std::string>()).status, 204);
    }
  }
  create("bob", "operator");
}

TEST_F(AccessTest, ATokenIsRefusedOnceItHasExpired) {
  const auto soon = format_ticks(Ticks(a_.h.time.now().value() + 600 * kTicksPerSecond));
  const auto first =
      a_.call("POST", "/tokens", {{"name", "ann"}, {"role", "admin"}, {"expires_at", soon}});
  EXPECT_EQ(first.status, 400) << "then no token could create another";
  a_.token = create("ann", "admin");
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

TEST_F(AccessTest, TheWholeAuditHasEveryEventAndNoSecret) {
  a_.token = create("ann", "admin");
  a_.call("POST", "/clusters/prod/pause", {{"reason", "noon"}}, {{"Idempotency-Key", "k"}});
  const auto some = a_.get("/audit")["entries"];
  const auto all = a_.call("GET", "/audit?all=true");
  const auto entries = ApiHarness::json_of(all)["entries"];
  EXPECT_EQ(static_cast<std::int64_t>(entries.size()), a_.h.journal->last_sequence()->value());
  EXPECT_LT(some.size(), entries.size());
  EXPECT_THAT(all.body, Not(HasSubstr("\"salt\"")));
  for (const auto& entry : entries) {
    EXPECT_FALSE(entry["stream"].get<std::string>().starts_with("idempotency/") &&
                 entry["data"].contains("body"));
  }
  EXPECT_EQ(a_.call("GET", "/audit?all=maybe").status, 400);
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

TEST_F(AccessTest, EachChangeIsOnRecordWithWhoFromWhereWhyAndThePlan) {
  a_.token = create("ann", "admin");
  const auto hash = a_.planned();
  const auto run = ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply"));
  a_.call("POST", "/runs/" + run["id"].get<std::string>() + "/cancel", {{"reason", "wrong week"}});
  json applied;
  json cancelled;
  for (const auto& entry : a_.get("/audit")["entries"]) {
    if (entry["type"] == "audit-asked" && entry["data"]["route"] == "applyPlan") {
      applied = entry;
    } else if (entry["type"] == "audit-asked" && entry["data"]["route"] == "cancelRun") {
      cancelled = entry;
    }
    EXPECT_EQ(entry["hash"].get<std::string>().size(), 64U);
  }
  EXPECT_EQ(applied["data"]["by"], "ann");
  EXPECT_EQ(applied["data"]["from"], "127.0.0.1");
  EXPECT_EQ(applied["data"]["plan"], hash);
  EXPECT_EQ(cancelled["data"]["reason"], "wrong week");
  // What has no body says why in a header.
  a_.call("DELETE", "/policies/none", nullptr, {{"Verger-Reason", "ticket%207%3a%20%c3%bcber"}});
  EXPECT_EQ(a_.get("/audit")["entries"].back()["type"], "audit-answered");
  const auto entries = a_.get("/audit")["entries"];
  EXPECT_EQ(entries[entries.size() - 2]["data"]["reason"], "ticket 7: \u00fcber");
  EXPECT_EQ(a_.get("/audit/verify")["verified"], a_.h.journal->last_sequence()->value());
}

TEST_F(AccessTest, TheSameKeyCarriesTheSameRequestOutOnce) {
  const auto hash = a_.planned();
  const http::Headers key{{"Idempotency-Key", "k1"}};
  const auto first = a_.call("POST", "/plans/" + hash + "/apply", json::object(), key);
  ASSERT_EQ(first.status, 202);
  const auto again = a_.call("POST", "/plans/" + hash + "/apply", json::object(), key);
  EXPECT_EQ(again.status, 202);
  EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true");
  EXPECT_EQ(ApiHarness::json_of(again)["id"], ApiHarness::json_of(first)["id"]);
  EXPECT_EQ(a_.h.executor->runs("prod").size(), 1U);
  const auto other = a_.call("POST", "/clusters/prod/pause", json::object(), key);
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(ApiHarness::code_of(other), "idempotency_mismatch");
  a_.crash();
  a_.boot();
  EXPECT_EQ(
      ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply", json::object(), key))["id"],
      ApiHarness::json_of(first)["id"]);
}

TEST_F(AccessTest, VerifyingALongAuditLetsOthersWorkInBetween) {
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(a_.h.journal->append("s", kAnyRevision, {NewEvent{"e"}}, a_.h.epoch).has_value());
  }
  std::optional<http::Response> verified;
  const auto ask = [](http::Handler handler,
                      std::optional<http::Response>& into) -> net::awaitable<void> {
    http::Request request{.method = "GET", .target = "/api/v1/audit/verify"};
    test::FixedBootstrapToken::sign(request);
    into = co_await handler(std::move(request));
  };
  net::co_spawn(*a_.h.context, ask(a_.api->handler(), verified), [](std::exception_ptr) {});
  int others = 0;
  while (!verified) {
    net::post(*a_.h.context, [&others] { ++others; });
    a_.h.context->restart();
    ASSERT_GT(a_.h.context->poll_one(), 0U);
  }
  EXPECT_GE(others, 5);
  EXPECT_EQ(ApiHarness::json_of(*verified)["verified"], a_.h.journal->last_sequence()->value());
}

TEST_F(AccessTest, AKeyCanBeUsedAgainWhereTheFirstRequestEndedInAnException) {
  const http::Headers key{{"Idempotency-Key", "k1"}};
  a_.h.cluster.dress = [](const test::FakeNode&, const http::Request&, http::Response&) {
    throw std::runtime_error("a mistake of ours");
  };
  EXPECT_ANY_THROW(a_.call("POST", "/clusters/prod/plans", {{"operation", "scavenge"}}, key));
  a_.h.cluster.dress = {};
  const auto again = a_.call("POST", "/clusters/prod/plans", {{"operation", "scavenge"}}, key);
  EXPECT_EQ(again.status, 201) << again.body;
}

/// What in `value` is not as the schema says, and what the schema does not name; empty: nothing.
std::string wrong_by_schema(const json& document, const json& schema, const json& value,
                            const std::string& where) {
  if (schema.contains("$ref")) {
    const auto name = schema["$ref"].get<std::string>();
    return wrong_by_schema(document,
                           document["components"]["schemas"].at(name.substr(name.rfind('/') + 1)),
                           value, where);
  }
  if (schema.contains("anyOf")) {
    return value.is_null() ? "" : wrong_by_schema(document, schema["anyOf"][0], value, where);
  }
  const auto type = schema.value("type", std::string());
  const bool fits =
      type.empty() || (type == "string" && value.is_string()) ||
      (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number()) ||
      (type == "boolean" && value.is_boolean()) || (type == "array" && value.is_array()) ||
      (type == "object" && value.is_object());
  if (!fits) {
    return where + " is no " + type + ": " + value.dump();
  }
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) {
    return where + " is none of " + schema["enum"].dump() + ": " + value.dump();
  }
  if (schema.contains("oneOf") && type == "string" &&
      std::ranges::none_of(schema["oneOf"], [&](const json& choice) {
        return choice.contains("pattern")
                   ? std::regex_search(value.get<std::string>(),
                                       std::regex(choice["pattern"].get<std::string>()))
                   : std::ranges::find(choice["enum"], value) != choice["enum"].end();
      })) {
    return where + " is none of " + schema["oneOf"].dump() + ": " + value.dump();
  }
  if (schema.contains("items")) {
    for (const auto& each : value) {
      if (auto wrong = wrong_by_schema(document, schema["items"], each, where + "[]");
          !wrong.empty()) {
        return wrong;
      }
    }
  }
  for (const auto& member : schema.value("required", json::array())) {
    if (!value.contains(member.get<std::string>())) {
      return where + " lacks " + member.get<std::string>();
    }
  }
  if (!schema.contains("properties")) {
    return "";
  }
  for (const auto& [key, each] : value.items()) {
    const auto found = schema["properties"].find(key);
    if (found == schema["properties"].end()) {
      return where + " has " + key + ", which the document does not name";
    }
    if (auto wrong = wrong_by_schema(document, *found, each, where + "." + key); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

/// Every operation of the served document is there, demands the role it says, takes the members
/// it says and no others, and answers with those it says and no others.
TEST_F(AccessTest, TheOpenApiDocumentAndTheImplementationAgree) {
  const auto document = a_.get("/openapi.json");
  EXPECT_EQ(document["openapi"], "3.1.0");
  a_.token = create("ann", "admin");
  const auto admin = a_.token;
  const auto viewer = create("vic", "viewer");
  const std::string yaml =
      "name: nightly\nclusters: [prod]\nschedule: [{cron: '0 1 * * *', zone: UTC}]\n"
      "windows: {allow: [{from: '00:00', to: '06:00', zone: UTC}]}\n";
  ASSERT_EQ(a_.call("PUT", "/policies/nightly", {{"yaml", yaml}}).status, 200);
  a_.h.cluster.scavenge_takes = std::chrono::minutes(10);
  const auto hash = a_.planned();

  // In this order each can be carried out.
  struct Asked {
    std::string id;
    std::string path;
    json body{};
  };
  const std::vector<Asked> asked{
      {"listClusters", "/clusters"},
      {"getCluster", "/clusters/prod"},
      {"updateCluster", "/clusters/prod", {{"labels", {{"tier", "gold"}}}, {"reason", "new"}}},
      {"makePlan",
       "/clusters/prod/plans",
       {{"operation", "scavenge"}, {"policy", "nightly"}, {"parameters", {{"threads", 2}}}}},
      {"listPlans", "/clusters/prod/plans"},
      {"getPlan", "/plans/" + hash},
      {"applyPlan", "/plans/" + hash + "/apply", json::object()},
      {"getSchedule", "/clusters/prod/schedule"},
      {"getCertificates", "/clusters/prod/certificates"},
      {"validatePolicy", "/policies/validate", {{"yaml", yaml}}},
      {"diffPolicy", "/policies/diff", {{"yaml", yaml + "enabled: false\n"}}},
      {"applyPolicy", "/policies/nightly", {{"yaml", yaml}}},
      {"listPolicies", "/policies"},
      {"getPolicy", "/policies/nightly"},
      {"listRuns", "/runs"},
      {"getRun", "/runs/RUN"},
      {"getRunGates", "/runs/RUN/gates"},
      {"getEvents", "/events"},
      {"getAudit", "/audit"},
      {"verifyAudit", "/audit/verify"},
      {"getJournal", "/admin/journal"},
      {"compactJournal", "/admin/compact", {{"reason", "a small disk"}}},
      {"createToken", "/tokens", {{"name", "eve"}, {"role", "operator"}}},
      {"listTokens", "/tokens"},
      {"listAgents", "/agents"},
      {"getOpenApi", "/openapi.json"},
      {"getHealth", "/health"},
      {"pauseRun", "/runs/RUN/pause", {{"mode", "drain"}, {"reason", "noon"}}},
      {"skipNode", "/runs/RUN/skip", {{"node", "n3"}}},
      {"throttleRun", "/runs/RUN/throttle", {{"percent", 50}, {"bytes_per_second", 1'000}}},
      {"cancelRun", "/runs/RUN/cancel", {{"reason", "enough"}}},
      {"pauseCluster", "/clusters/prod/pause", {{"mode", "now"}, {"reason", "noon"}}},
      {"resumeCluster", "/clusters/prod/resume", json::object()},
      {"deletePolicy", "/policies/nightly"},
      {"revokeToken", "/tokens/" + viewer.substr(7, viewer.rfind('_') - 7)},
  };
  // Of these the order or the surroundings are their own tests'.
  std::set<std::string> elsewhere{"addCluster",       "removeCluster", "resumeRun",
                                  "createAgentToken", "enrolAgent",    "forgetAgent"};
  for (const auto& [path, methods] : document["paths"].items()) {
    ASSERT_TRUE(path.starts_with("/api/v1"));
    for (const auto& [method, operation] : methods.items()) {
      SCOPED_TRACE(method + " " + path);
      const auto found =
          std::ranges::find(asked, operation["operationId"].get<std::string>(), &Asked::id);
      if (found == asked.end()) {
        EXPECT_EQ(elsewhere.erase(operation["operationId"].get<std::string>()), 1U)
            << "no test calls it";
      }
    }
  }
  EXPECT_TRUE(elsewhere.empty());
  std::string run;
  for (auto each : asked) {
    SCOPED_TRACE(each.id);
    if (const auto begin = each.path.find("RUN"); begin != std::string::npos) {
      each.path.replace(begin, 3, run);
    }
    const auto routes = api_routes();
    const auto route = std::ranges::find(routes, each.id, &Route::id);
    ASSERT_NE(route, routes.end());
    std::string method(route->method);
    std::ranges::transform(method, method.begin(),
                           [](char c) { return static_cast<char>(c | 32); });
    const auto& operation = document["paths"]["/api/v1" + std::string(route->path)][method];
    const bool open = operation["x-role"] == "nobody" || operation["x-role"] == "viewer";
    if (!open) {
      a_.token = viewer;
      EXPECT_EQ(a_.call(std::string(route->method), each.path, each.body).status, 403);
    }
    a_.token = admin;
    if (operation.contains("requestBody")) {
      const auto& schema = operation["requestBody"]["content"]["application/json"]["schema"];
      EXPECT_EQ(wrong_by_schema(document, schema, each.body, "body"), "");
      auto more = each.body;
      more["nonsense"] = true;
      const auto refused = a_.call(std::string(route->method), each.path, more);
      EXPECT_EQ(refused.status, 400);
      // It names those that it takes.
      const std::string detail = ApiHarness::json_of(refused)["detail"];
      const std::string name = schema["$ref"];
      auto known = detail.substr(detail.rfind("takes ") + 6) + ",";
      for (const auto& [key, ignored] :
           document["components"]["schemas"][name.substr(name.rfind('/') + 1)]["properties"]
               .items()) {
        EXPECT_TRUE(known.contains(key + ",")) << key << " of the document, but: " << detail;
      }
    }
    const auto answer = a_.call(std::string(route->method), each.path, each.body);
    ASSERT_TRUE(operation["responses"].contains(std::to_string(answer.status))) << answer.body;
    const auto& good = operation["responses"][std::to_string(answer.status)];
    if (good.contains("content")) {
      EXPECT_EQ(wrong_by_schema(document, good["content"]["application/json"]["schema"],
                                ApiHarness::json_of(answer), "answer"),
                "");
    }
    if (each.id == "applyPlan") {
      run = ApiHarness::json_of(answer)["id"];
      ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").running.has_value(); }));
      a_.h.run_until([] { return false; }, std::chrono::minutes(1));
    }
  }
}

TEST_F(AccessTest, MetricsTellWhatAPersonWouldBeWokenFor) {
  a_.h.cluster.scavenge_takes = std::chrono::minutes(1);
  EXPECT_THAT(a_.call("GET", "/metrics").body,
              HasSubstr("verger_runs{cluster=\"prod\",outcome=\"failed\"} 0"));
  const auto run = ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"));
  const std::string id = run["id"];
  ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").last_finished.has_value(); }));
  a_.h.cluster.node("n3").up = false;
  a_.h.run_until([] { return false; }, std::chrono::minutes(2));
  a_.get("/clusters/prod");  // looks at the nodes
  const auto waiting = a_.call("GET", "/metrics").body;
  EXPECT_THAT(waiting, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"active\"} 1"));
  EXPECT_THAT(waiting,
              HasSubstr("verger_step_waiting_seconds{cluster=\"prod\",gate=\"voters-alive\"}"));
  EXPECT_THAT(waiting, HasSubstr("verger_node_up{cluster=\"prod\",node=\"n3\"} 0"));
  EXPECT_THAT(waiting, HasSubstr("verger_agent_up{cluster=\"prod\",node=\"n3\"} 1"));
  EXPECT_THAT(waiting, HasSubstr("verger_node_stays_down{cluster=\"prod\",node=\"n3\"} 0"));
  a_.h.cluster.node("n3").up = true;
  ASSERT_TRUE(a_.h.run_to_end(id));
  const auto done = a_.call("GET", "/metrics");
  EXPECT_EQ(done.headers.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(done.body, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"done\"} 1"));
  EXPECT_THAT(
      done.body,
      HasSubstr("verger_last_success_timestamp_seconds{cluster=\"prod\",operation=\"scavenge\"}"));
}

TEST_F(AccessTest, AScrapeShowsWhatWasLastObservedAndAsksNobody) {
  ASSERT_EQ(a_.call("GET", "/clusters/prod").status, 200);
  a_.h.cluster.node("n3").up = false;
  int asked = 0;
  a_.h.cluster.fate = [&](const auto&, const auto&) {
    ++asked;
    return std::nullopt;
  };
  a_.h.cluster.dress = [&](const auto&, const auto&, auto&) { ++asked; };
  const auto before = a_.call("GET", "/metrics").body;
  EXPECT_EQ(asked, 0);
  EXPECT_THAT(before, HasSubstr("verger_node_up{cluster=\"prod\",node=\"n3\"} 1"));
  const std::string observed = "verger_cluster_observed_timestamp_seconds{cluster=\"prod\"} ";
  const auto time_in = [&](const std::string& text) {
    const auto at = text.find(observed);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? 0.0 : std::stod(text.substr(at + observed.size()));
  };
  ASSERT_EQ(a_.call("GET", "/clusters/prod").status, 200);
  const auto after = a_.call("GET", "/metrics").body;
  EXPECT_GT(asked, 0);
  EXPECT_THAT(after, HasSubstr("verger_node_up{cluster=\"prod\",node=\"n3\"} 0"));
  EXPECT_GT(time_in(after), time_in(before));
}

TEST_F(AccessTest, ARunThatLeavesDifferingNodesIsNoSuccess) {
  a_.h.cluster.node("n3").digest = "bb";
  a_.h.cluster.node("n3").readable_digest = "ss";
  const std::string id =
      ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"))["id"];
  ASSERT_TRUE(a_.h.run_to_end(id));
  const auto run = a_.get("/runs/" + id);
  EXPECT_EQ(run["state"], "done-with-differences");
  EXPECT_EQ(run["report"]["readable_equal"], false);
  EXPECT_THAT(run["report"]["differences"].dump(), HasSubstr("n1, n2 against n3"));
  const auto metrics = a_.call("GET", "/metrics").body;
  EXPECT_THAT(metrics,
              HasSubstr("verger_runs{cluster=\"prod\",outcome=\"done-with-differences\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"done\"} 0"));
  EXPECT_THAT(metrics,
              HasSubstr("verger_last_differences_timestamp_seconds{cluster=\"prod\",operation="));
  EXPECT_THAT(metrics, Not(HasSubstr("verger_last_success_timestamp_seconds{")));
}

TEST_F(AccessTest, AFailedRunLeavesTheTimeOfItsFailure) {
  a_.h.cluster.node("n2").next_ends = std::vector<std::string>(20, "Errored");
  const std::string id =
      ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"))["id"];
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.state(id).status == RunStatus::kFailed; },
                             std::chrono::hours(2)));
  const auto metrics = a_.call("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"failed\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("verger_last_failure_timestamp_seconds{cluster=\"prod\","));
}

}  // namespace
}  // namespace verger::controller
