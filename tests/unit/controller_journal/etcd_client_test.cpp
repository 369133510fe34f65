#include "controller/journal/etcd_client.h"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "nodeagent/http/base64.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Answers as scripted, and keeps to whom requests went.
class ScriptedEtcd final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds) override {
    asked.push_back(to.host);
    bodies.push_back(json::parse(request.body));
    auto answer = answers.empty() ? Result<http::Response>(Error{Errc::kUnavailable, "refused"})
                                  : std::move(answers.front());
    if (!answers.empty()) {
      answers.pop_front();
    }
    co_return answer;
  }
  void say(int status, const json& body) {
    answers.emplace_back(http::Response{.status = status, .body = body.dump()});
  }
  void fail(Errc code) { answers.emplace_back(Error{code, "the wire"}); }

  std::deque<Result<http::Response>> answers;
  std::vector<std::string> asked;
  std::vector<json> bodies;
};

class EtcdClientTest : public ::testing::Test {
 protected:
  template <class T>
  T wait_for(net::awaitable<T> work) {
    std::optional<T> out;
    net::io_context context;
    net::co_spawn(context, std::move(work), [&](const std::exception_ptr& error, T value) {
      if (!error) {
        out.emplace(std::move(value));
      }
    });
    context.run();
    return std::move(out).value();
  }
  Result<EtcdAnswer> write() {
    return wait_for(
        client_.transact(json::array(), json::array({etcd::put("k", "v")}), json::array()));
  }
  Result<EtcdAnswer> read() { return wait_for(client_.read(json::array({etcd::get("k")}))); }
  static json good() { return {{"header", {{"revision", "7"}}}, {"succeeded", true}}; }

  ScriptedEtcd etcd_;
  EtcdClient client_{
      {{.tls = false, .host = "a", .port = 1}, {.tls = false, .host = "b", .port = 1}},
      etcd_,
      std::chrono::seconds(10)};
};

TEST(EtcdEndpoints, AreUrlsWithTheUsualPort) {
  const auto endpoints = parse_etcd_endpoints("https://e1,http://127.0.0.1:9,https://[::1]/");
  ASSERT_TRUE(endpoints.has_value()) << endpoints.error().message;
  ASSERT_EQ(endpoints->size(), 3U);
  EXPECT_EQ((*endpoints)[0], (http::Endpoint{.tls = true, .host = "e1", .port = 2379}));
  EXPECT_EQ((*endpoints)[1], (http::Endpoint{.tls = false, .host = "127.0.0.1", .port = 9}));
  EXPECT_EQ((*endpoints)[2], (http::Endpoint{.tls = true, .host = "::1", .port = 2379}));
  for (const auto* wrong : {"", "e1:2379", "http://e1:x", "http://e1/path"}) {
    const auto refused = parse_etcd_endpoints(wrong);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  }
}

TEST_F(EtcdClientTest, AWriteThatAnEndpointTookIsNotSentToTheNext) {
  etcd_.fail(Errc::kUnknownOutcome);
  EXPECT_EQ(write().error().code, Errc::kUnknownOutcome);
  EXPECT_THAT(etcd_.asked, ElementsAre("a"));
  // etcd itself says so where it gave up waiting for its peers.
  etcd_.say(503, {{"message", "etcdserver: request timed out"}});
  const auto late = write();
  EXPECT_EQ(late.error().code, Errc::kUnknownOutcome);
  EXPECT_THAT(late.error().message, HasSubstr("request timed out"));
  EXPECT_THAT(etcd_.asked, ElementsAre("a", "b"));
  etcd_.say(200, "no transaction");
  EXPECT_EQ(write().error().code, Errc::kUnknownOutcome);
}

TEST_F(EtcdClientTest, AWriteThatNoEndpointTookGoesToTheNext) {
  etcd_.fail(Errc::kUnavailable);
  etcd_.say(200, good());
  const auto written = write();
  ASSERT_TRUE(written.has_value()) << written.error().message;
  EXPECT_EQ(written->revision, 7);
  EXPECT_TRUE(written->succeeded);
  // The one that answered is tried first from now on.
  etcd_.say(200, good());
  ASSERT_TRUE(write().has_value());
  EXPECT_THAT(etcd_.asked, ElementsAre("a", "b", "b"));
  EXPECT_EQ(write().error().code, Errc::kUnavailable);
}

TEST_F(EtcdClientTest, AReadIsSentToTheNextAfterAnyFailure) {
  etcd_.fail(Errc::kUnknownOutcome);
  etcd_.say(
      200, {{"header", {{"revision", "7"}}},
            {"succeeded", true},
            {"responses", json::array({{{"response_range",
                                         {{"kvs", json::array({{{"key", http::base64_encode("k")},
                                                                {"value", http::base64_encode("v")},
                                                                {"mod_revision", "5"}}})}}}}})}});
  const auto found = read();
  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_EQ(found->read.size(), 1U);
  ASSERT_EQ(found->read[0].size(), 1U);
  EXPECT_EQ(found->read[0][0].key, "k");
  EXPECT_EQ(found->read[0][0].value, "v");
  EXPECT_EQ(found->read[0][0].mod_revision, 5);
  etcd_.fail(Errc::kUnknownOutcome);
  etcd_.say(503, json::object());
  EXPECT_EQ(read().error().code, Errc::kUnavailable);
}

TEST_F(EtcdClientTest, AnswersThatEveryMemberWouldGiveEndTheCall) {
  const struct {
    int status;
    const char* message;
    Errc code;
  } cases[] = {{400, "etcdserver: request is too large", Errc::kInvalidArgument},
               {401, "etcdserver: user name is empty", Errc::kUnauthorized},
               {404, "etcdserver: requested lease not found", Errc::kNotFound},
               {429, "etcdserver: mvcc: database space exceeded", Errc::kNoSpace}};
  for (const auto& each : cases) {
    etcd_.asked.clear();
    etcd_.say(each.status, {{"message", each.message}});
    const auto refused = write();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, each.code) << each.message;
    EXPECT_THAT(refused.error().message, HasSubstr(each.message));
    EXPECT_EQ(etcd_.asked.size(), 1U);
  }
}

TEST_F(EtcdClientTest, ALeaseWithoutTimeIsOver) {
  etcd_.say(200, {{"result", {{"ID", "12"}, {"TTL", "9"}}}});
  EXPECT_TRUE(wait_for(client_.keep_lease(12)).has_value());
  etcd_.say(200, {{"result", {{"ID", "12"}}}});
  EXPECT_EQ(wait_for(client_.keep_lease(12)).error().code, Errc::kNotFound);
  etcd_.say(200, {{"error", "broken"}});
  EXPECT_EQ(wait_for(client_.keep_lease(12)).error().code, Errc::kUnavailable);
}

}  // namespace
}  // namespace verger::controller
