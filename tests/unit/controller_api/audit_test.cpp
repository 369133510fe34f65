#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "tests/unit/controller_api/api_harness.h"

/// What is on record of changes, and requests that come twice.
namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::Not;

class AuditTest : public ::testing::Test {
 protected:
  ApiHarness a_;
};

TEST_F(AuditTest, TheWholeAuditHasEveryEventAndNoSecret) {
  a_.token = a_.create_token("ann", "admin");
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

TEST_F(AuditTest, EachChangeIsOnRecordWithWhoFromWhereWhyAndThePlan) {
  a_.token = a_.create_token("ann", "admin");
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

TEST_F(AuditTest, TheSameKeyCarriesTheSameRequestOutOnce) {
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

TEST_F(AuditTest, VerifyingALongAuditLetsOthersWorkInBetween) {
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

TEST_F(AuditTest, AKeyCanBeUsedAgainWhereTheFirstRequestEndedInAnException) {
  const http::Headers key{{"Idempotency-Key", "k1"}};
  a_.h.cluster.dress = [](const test::FakeNode&, const http::Request&, http::Response&) {
    throw std::runtime_error("a mistake of ours");
  };
  EXPECT_ANY_THROW(a_.call("POST", "/clusters/prod/plans", {{"operation", "scavenge"}}, key));
  a_.h.cluster.dress = {};
  const auto again = a_.call("POST", "/clusters/prod/plans", {{"operation", "scavenge"}}, key);
  EXPECT_EQ(again.status, 201) << again.body;
}

}  // namespace
}  // namespace verger::controller
