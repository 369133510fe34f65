#include "controller/cluster/prometheus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"

// Against a real HTTP server on loopback that answers as Prometheus does.
namespace verger::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NoCredentials final : public CredentialStore {
 public:
  Result<Credentials> find(std::string_view) override {
    return Error{Errc::kNotFound, "there are none"};
  }
};

class Prometheus : public ::testing::Test {
 protected:
  Prometheus()
      : server_(
            context_.get_executor(), {.host = "127.0.0.1", .port = 0},
            [this](http::Request request) -> net::awaitable<http::Response> {
              asked_.push_back(request.target);
              const auto target = http::parse_target(request.target);
              const auto query = target ? target->parameter("query").value_or("") : "";
              const auto found = answers_.find(std::string(query));
              http::Response out;
              out.status = found == answers_.end() ? 400 : 200;
              out.headers.set("Content-Type", "application/json");
              out.body =
                  found == answers_.end()
                      ? R"({"status":"error","errorType":"bad_data","error":"1:3: parse error"})"
                      : found->second;
              co_return out;
            },
            null_log()) {
    const auto endpoint = server_.listen();
    EXPECT_TRUE(endpoint.has_value());
    url_ = endpoint->url();
  }
  ~Prometheus() override { run(server_.stop(std::chrono::milliseconds(0))); }
  Network network() {
    return {.client = client_,
            .timers = http::system_timers(),
            .clock = system_clock(),
            .credentials = credentials_,
            .log = null_log(),
            .request_deadline = std::chrono::seconds(10)};
  }
  template <class T>
  T run(net::awaitable<T> work) {
    std::optional<T> out;
    net::co_spawn(
        context_,
        [](net::awaitable<T> what, std::optional<T>& into) -> net::awaitable<void> {
          into.emplace(co_await std::move(what));
        }(std::move(work), out),
        [this](std::exception_ptr) { context_.stop(); });
    context_.restart();
    context_.run();
    return std::move(*out);
  }
  void run(net::awaitable<void> work) {
    net::co_spawn(context_, std::move(work), [this](std::exception_ptr) { context_.stop(); });
    context_.restart();
    context_.run();
  }
  static std::string vector_of(const std::string& series) {
    return R"({"status":"success","data":{"resultType":"vector","result":[)" + series + "]}}";
  }
  planner::QueryResult ask(planner::QueryBlocker query) {
    query.url = query.url.empty() ? url_ : query.url;
    return run(ask_queries(network(), {std::move(query)})).front();
  }

  net::io_context context_{1};
  std::map<std::string, std::string> answers_;
  std::vector<std::string> asked_;
  http::BeastClient client_{context_.get_executor()};
  NoCredentials credentials_;
  http::Server server_;
  std::string url_;
};

TEST_F(Prometheus, EveryValueOfAVectorKeepsToBothBounds) {
  const std::string query = R"(sum by (node) (rate(writes{job="db"}[5m])))";
  answers_[query] = vector_of(R"({"metric":{"node":"1"},"value":[1717286400.1,"0.25"]},)"
                              R"({"metric":{"node":"2"},"value":[1717286400.1,"0.75"]})");
  const auto values = run(instant_query(network(), url_, query));
  ASSERT_TRUE(values.has_value()) << values.error().message;
  EXPECT_THAT(*values, ElementsAre(0.25, 0.75));
  EXPECT_THAT(asked_.front(), HasSubstr("/api/v1/query?query=sum%20by"));
  EXPECT_TRUE(ask({"w", "", query, "0", "1"}).holds);
  const auto above = ask({"w", "", query, "", "0.5"});
  EXPECT_FALSE(above.holds);
  EXPECT_EQ(above.value, "0.75");
  EXPECT_EQ(above.limit, "at most 0.5");
  EXPECT_FALSE(ask({"w", "", query, "0.5", ""}).holds);
}

TEST_F(Prometheus, AScalarWillDoAndNotANumberKeepsToNothing) {
  answers_["time()"] = R"({"status":"success","data":{"resultType":"scalar","result":[1,"17"]}})";
  EXPECT_TRUE(ask({"t", "", "time()", "17", "17"}).holds);
  answers_["nan"] = vector_of(R"({"metric":{},"value":[1,"NaN"]})");
  EXPECT_FALSE(ask({"n", "", "nan", "", "5"}).holds);
  answers_["inf"] = vector_of(R"({"metric":{},"value":[1,"+Inf"]})");
  EXPECT_FALSE(ask({"n", "", "inf", "", "5"}).holds);
}

TEST_F(Prometheus, WhatIsNotMeasuredIsNotKnownToBeGood) {
  answers_["empty"] = vector_of("");
  const auto empty = ask({"e", "", "empty", "", "5"});
  EXPECT_FALSE(empty.holds);
  EXPECT_THAT(empty.problem, HasSubstr("no values"));
  const auto wrong = ask({"e", "", "1 +", "", "5"});
  EXPECT_FALSE(wrong.holds);
  EXPECT_THAT(wrong.problem, HasSubstr("parse error")) << "in Prometheus' own words";
  answers_["html"] = "<html>login</html>";
  EXPECT_THAT(ask({"e", "", "html", "", "5"}).problem, HasSubstr("none of Prometheus'"));
  answers_["range"] = R"({"status":"success","data":{"resultType":"matrix","result":[]}})";
  EXPECT_THAT(ask({"e", "", "range", "", "5"}).problem, HasSubstr("matrix"));
}

TEST_F(Prometheus, AnAbsentServerAndOneThatMayNotBeCalledAreProblems) {
  run(server_.stop(std::chrono::milliseconds(0)));
  const auto gone = ask({"g", "", "up", "1", ""});
  EXPECT_FALSE(gone.holds);
  EXPECT_FALSE(gone.problem.empty());
  EXPECT_THAT(ask({"g", "http://192.0.2.1:9090", "up", "1", ""}).problem,
              HasSubstr("loopback addresses only"));
}

}  // namespace
}  // namespace verger::controller
