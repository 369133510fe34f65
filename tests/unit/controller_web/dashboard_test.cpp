#include "controller/web/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "controller/web/assets.h"
#include "nodeagent/api/json_answer.h"
#include "tests/support/manual_clock.h"

namespace verger::controller::web {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A dashboard around an API that knows the tokens "good" and "other", and keeps what it was sent.
class DashboardTest : public ::testing::Test {
 protected:
  struct Answer {
    http::Response response;
    json body;
  };

  static net::awaitable<http::Response> answer_as_api(DashboardTest* self, http::Request request) {
    const std::string bearer(request.headers.get("Authorization").value_or(""));
    self->seen_.push_back(std::move(request));
    if (bearer == "Bearer good" && !self->revoked_) {
      co_return api::json_answer(200, {{"name", "ann"}, {"role", "operator"}});
    }
    if (bearer == "Bearer other") {
      co_return api::json_answer(200, {{"name", "vic"}, {"role", "viewer"}});
    }
    co_return api::problem(401, "unauthorized", "no");
  }

  Answer call(const std::string& method, const std::string& target, http::Headers headers = {},
              const std::string& body = {}) {
    http::Request request{
        .method = method, .target = target, .headers = std::move(headers), .body = body};
    if (!cookie_.empty() && !request.headers.get("Cookie")) {
      request.headers.set("Cookie", "theme=dark; " + cookie_);
    }
    net::io_context context;
    auto answered =
        net::co_spawn(context, dashboard_.handler()(std::move(request)), net::use_future);
    context.run();
    auto response = answered.get();
    auto parsed = json::parse(response.body, nullptr, false);
    return {std::move(response), std::move(parsed)};
  }

  Answer log_in(const std::string& token) {
    return call("POST", "/ui/session",
                {{"Content-Type", "application/json"}, {"Sec-Fetch-Site", "same-origin"}},
                json{{"token", token}}.dump());
  }
  /// From then on calls have the session's cookie; its csrf value.
  std::string logged_in(const std::string& token = "good") {
    const auto answer = log_in(token);
    EXPECT_EQ(answer.response.status, 200) << answer.response.body;
    const std::string set(answer.response.headers.get("Set-Cookie").value_or(""));
    cookie_ = set.substr(0, set.find(';'));
    seen_.clear();
    return answer.body.value("csrf", std::string());
  }

  SeededRandom random_{7};
  test::ManualClock clock_;
  std::vector<http::Request> seen_;
  bool revoked_ = false;
  std::string cookie_;
  Dashboard dashboard_{
      {.api = [this](http::Request request) { return answer_as_api(this, std::move(request)); },
       .random = random_,
       .clock = clock_,
       .secure = false}};
};

TEST_F(DashboardTest, ALoginIsACookieThatScriptsAndOtherSitesDoNotGet) {
  const auto answer = log_in("good");
  ASSERT_EQ(answer.response.status, 200);
  EXPECT_EQ(answer.body["name"], "ann");
  EXPECT_EQ(answer.body["role"], "operator");
  const std::string set(answer.response.headers.get("Set-Cookie").value_or(""));
  EXPECT_THAT(set, StartsWith("verger-session="));
  EXPECT_THAT(set, HasSubstr("; HttpOnly; SameSite=Strict; Max-Age=43200"));
  EXPECT_THAT(set, Not(HasSubstr("good"))) << "the token stays in vergerd";
  EXPECT_THAT(answer.response.body, Not(HasSubstr("good")));
  EXPECT_EQ(answer.response.headers.get("Cache-Control"), "no-store");
}

TEST_F(DashboardTest, OverHttpsTheCookieIsForHttpsAndThisHostAlone) {
  Dashboard secure(
      {.api = [this](http::Request request) { return answer_as_api(this, std::move(request)); },
       .random = random_,
       .clock = clock_,
       .secure = true});
  net::io_context context;
  auto answered = net::co_spawn(context,
                                secure.handler()({.method = "POST",
                                                  .target = "/ui/session",
                                                  .headers = {{"Content-Type", "application/json"}},
                                                  .body = R"({"token": "good"})"}),
                                net::use_future);
  context.run();
  const std::string set(answered.get().headers.get("Set-Cookie").value_or(""));
  EXPECT_THAT(set, StartsWith("__Host-verger-session="));
  EXPECT_THAT(set, EndsWith("; Secure"));
}

TEST_F(DashboardTest, AWrongTokenLogsNoOneIn) {
  for (const auto* token : {"bad", "", "good\r\nX: y", " good"}) {
    const auto answer = log_in(token);
    EXPECT_EQ(answer.response.status, 401) << token;
    EXPECT_FALSE(answer.response.headers.get("Set-Cookie")) << token;
  }
  EXPECT_EQ(call("GET", "/ui/session").response.status, 401);
}

TEST_F(DashboardTest, ARequestOfASessionGetsItsToken) {
  logged_in();
  const auto answer = call("GET", "/api/v1/clusters?limit=1");
  EXPECT_EQ(answer.response.status, 200);
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].headers.get("Authorization"), "Bearer good");
  EXPECT_EQ(seen_[0].target, "/api/v1/clusters?limit=1");
  EXPECT_EQ(answer.response.headers.get("X-Content-Type-Options"), "nosniff");
  EXPECT_THAT(std::string(*answer.response.headers.get("Content-Security-Policy")),
              HasSubstr("default-src 'none'"));
}

TEST_F(DashboardTest, ATokenOfTheRequestItselfIsLeftAlone) {
  logged_in();
  call("POST", "/api/v1/runs/r/pause", {{"Authorization", "Bearer other"}}, "{}");
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].headers.get("Authorization"), "Bearer other");
}

TEST_F(DashboardTest, AChangeNeedsTheCsrfValueOfItsSession) {
  const auto stale = logged_in();
  const auto csrf = logged_in();
  const std::string name(kCsrfHeader);
  for (const auto& value : {std::string(), std::string("guess"), stale}) {
    const auto refused = call("POST", "/api/v1/runs/r/pause", {{name, value}}, "{}");
    EXPECT_EQ(refused.response.status, 403) << value;
    EXPECT_EQ(refused.body["code"], "csrf");
  }
  EXPECT_TRUE(seen_.empty()) << "the API was not reached";
  EXPECT_EQ(call("POST", "/api/v1/runs/r/pause", {{name, csrf}}, "{}").response.status, 200);
  EXPECT_EQ(call("DELETE", "/ui/session").response.status, 403);
}

TEST_F(DashboardTest, WhatAnotherSiteSendsIsRefusedEvenWithTheCookie) {
  const auto csrf = logged_in();
  const std::string name(kCsrfHeader);
  const http::Headers elsewhere[] = {
      {{name, csrf}, {"Sec-Fetch-Site", "cross-site"}},
      {{name, csrf}, {"Sec-Fetch-Site", "same-site"}},
      {{name, csrf}, {"Host", "127.0.0.1:2115"}, {"Origin", "http://evil.example"}},
      {{name, csrf}, {"Host", "127.0.0.1:2115"}, {"Origin", "null"}}};
  for (const auto& headers : elsewhere) {
    EXPECT_EQ(call("POST", "/api/v1/runs/r/pause", headers, "{}").response.status, 403);
    EXPECT_EQ(call("GET", "/api/v1/runs", headers).response.status, 403);
    EXPECT_EQ(call("DELETE", "/ui/session", headers).response.status, 403);
  }
  EXPECT_TRUE(seen_.empty());
  EXPECT_EQ(
      call("GET", "/api/v1/runs", {{"Host", "127.0.0.1:2115"}, {"Origin", "http://127.0.0.1:2115"}})
          .response.status,
      200);
}

TEST_F(DashboardTest, ALoginFromAnotherSiteIsRefused) {
  const auto body = R"({"token": "good"})";
  EXPECT_EQ(call("POST", "/ui/session",
                 {{"Content-Type", "application/json"}, {"Sec-Fetch-Site", "cross-site"}}, body)
                .response.status,
            403);
  EXPECT_EQ(call("POST", "/ui/session", {{"Content-Type", "text/plain"}}, body).response.status,
            415);
}

TEST_F(DashboardTest, ASessionEndsByLogoutByItsTimeAndWithItsToken) {
  const auto csrf = logged_in();
  EXPECT_EQ(call("DELETE", "/ui/session", {{std::string(kCsrfHeader), csrf}}).response.status, 204);
  EXPECT_EQ(call("GET", "/api/v1/runs").response.status, 401);

  logged_in();
  clock_.advance_seconds(12 * 3600 - 1);
  EXPECT_EQ(call("GET", "/api/v1/runs").response.status, 200);
  clock_.advance_seconds(1);
  EXPECT_EQ(call("GET", "/api/v1/runs").response.status, 401);

  logged_in();
  EXPECT_EQ(call("GET", "/ui/session").response.status, 200);
  revoked_ = true;
  EXPECT_EQ(call("GET", "/ui/session").response.status, 401);
  revoked_ = false;
  EXPECT_EQ(call("GET", "/ui/session").response.status, 401) << "it was forgotten";
}

TEST_F(DashboardTest, ANewLoginReplacesTheSessionOfItsBrowser) {
  logged_in("good");
  const auto before = cookie_;
  logged_in("other");
  EXPECT_EQ(call("GET", "/ui/session").body["name"], "vic");
  EXPECT_EQ(call("GET", "/api/v1/runs", {{"Cookie", before}}).response.status, 401);
}

TEST_F(DashboardTest, AnIdentifiedHeadHasTheSessionsToken) {
  logged_in();
  const http::Request head{.method = "POST", .headers = {{"Cookie", cookie_}}};
  EXPECT_EQ(dashboard_.identified(head).headers.get("Authorization"), "Bearer good");
  EXPECT_FALSE(dashboard_.identified({.method = "GET"}).headers.get("Authorization"));
}

TEST_F(DashboardTest, PagesLoadFromThisHostAloneAndAreNotFramed) {
  const auto page = call("GET", "/ui/");
  EXPECT_EQ(page.response.status, 200);
  EXPECT_EQ(page.response.headers.get("Content-Type"), "text/html; charset=utf-8");
  const std::string policy(*page.response.headers.get("Content-Security-Policy"));
  for (const auto* rule :
       {"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
        "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"}) {
    EXPECT_THAT(policy, HasSubstr(rule));
  }
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  for (const auto& asset : assets()) {
    SCOPED_TRACE(asset.name);
    EXPECT_THAT(std::string(asset.text), Not(HasSubstr("https://"))) << "an external address";
    EXPECT_THAT(std::string(asset.text), Not(HasSubstr("innerHTML")));
  }
  EXPECT_EQ(call("GET", "/ui/../secret").response.status, 404);
  EXPECT_EQ(call("POST", "/ui/app.js").response.status, 405);
  EXPECT_EQ(call("GET", "/").response.headers.get("Location"), "/ui/");
}

TEST_F(DashboardTest, AnUnchangedPageIsNotSentAgain) {
  const auto first = call("GET", "/ui/app.js", {{"Accept-Encoding", "gzip, br"}});
  EXPECT_EQ(first.response.headers.get("Content-Encoding"), "gzip");
  const std::string etag(*first.response.headers.get("ETag"));
  const auto again = call("GET", "/ui/app.js", {{"If-None-Match", etag}});
  EXPECT_EQ(again.response.status, 304);
  EXPECT_TRUE(again.response.body.empty());
}

TEST_F(DashboardTest, AllPagesTogetherStayBelow300KilobytesCompressed) {
  std::size_t bytes = 0;
  for (const auto& asset : assets()) {
    bytes += call("GET", "/ui/" + std::string(asset.name), {{"Accept-Encoding", "gzip"}})
                 .response.body.size();
  }
  EXPECT_GT(bytes, 1'000U);
  EXPECT_LT(bytes, 300'000U);
}

TEST(Sessions, TheOldestIsForgottenWhereThereAreTooMany) {
  SeededRandom random(1);
  test::ManualClock clock;
  Sessions sessions(random, clock, 2);
  const auto first = sessions.open("a");
  clock.advance_seconds(1);
  const auto second = sessions.open("b");
  clock.advance_seconds(1);
  const auto third = sessions.open("c");
  EXPECT_EQ(sessions.size(), 2U);
  EXPECT_FALSE(sessions.find(first.cookie));
  EXPECT_EQ(sessions.find(second.cookie)->token, "b");
  EXPECT_EQ(sessions.find(third.cookie)->token, "c");
  EXPECT_FALSE(sessions.find(third.cookie + "0"));
  EXPECT_FALSE(sessions.find(third.cookie.substr(0, 12)));
}

}  // namespace
}  // namespace verger::controller::web
