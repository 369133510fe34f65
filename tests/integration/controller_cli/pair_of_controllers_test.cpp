// Whom the command line calls where there are two controllers, and what it never sends twice.
#include <fmt/format.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "controller/cli/commands.h"
#include "engine/base/log.h"
#include "nodeagent/http/server.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

http::Response answer(int status, const json& body) {
  http::Response out;
  out.status = status;
  out.headers.set("Content-Type", "application/json");
  out.body = body.dump();
  return out;
}

http::Response standby(const std::string& acting = {}) {
  return answer(503, {{"code", "standby"},
                      {"detail", "this controller is on standby"},
                      {"acting", acting.empty() ? json() : json{{"url", acting}}}});
}

/// Answers on a loopback port, on a thread of its own.
class FakeController {
 public:
  using Answer = std::function<http::Response(const http::Request&)>;
  explicit FakeController(Answer answer_with) : answer_(std::move(answer_with)) {
    const auto listening = server_.listen();
    url_ = listening.value().url();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~FakeController() {
    net::co_spawn(context_, server_.stop(milliseconds(0)), net::use_future).wait();
    work_.reset();
    context_.stop();
    thread_.join();
  }
  FakeController(const FakeController&) = delete;
  FakeController& operator=(const FakeController&) = delete;
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] http::Endpoint endpoint() const {
    return http::parse_endpoint(url_, http::kControllerPort).value();
  }
  /// The requests it got, without the looks whether it is there.
  std::vector<http::Request> asked() {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }

 private:
  net::awaitable<http::Response> handle(http::Request request) {
    if (request.target == "/api/v1/health") {
      co_return answer(200, {{"status", "any"}});
    }
    {
      const std::scoped_lock lock(mutex_);
      asked_.push_back(request);
    }
    co_return answer_(request);
  }

  Answer answer_;
  std::mutex mutex_;
  std::vector<http::Request> asked_;
  net::io_context context_{1};
  net::executor_work_guard<net::io_context::executor_type> work_{context_.get_executor()};
  http::Server server_{context_.get_executor(),
                       {},
                       [this](http::Request request) { return handle(std::move(request)); },
                       null_log()};
  std::string url_;
  std::thread thread_;
};

/// Takes the request and ends the connection without a whole answer.
http::Response dies(const http::Request&) {
  http::Response out;
  out.stream = []() -> net::awaitable<Result<std::string>> {
    co_return Error{Errc::kCancelled, "it dies"};
  };
  return out;
}

const FakeController::Answer kActs = [](const http::Request&) {
  return answer(200, {{"id", "it acted"}});
};

struct Client {
  explicit Client(std::vector<http::Endpoint> controllers, milliseconds retry_for = milliseconds(0))
      : api({.controllers = std::move(controllers), .retry_for = retry_for}, notices) {}
  std::ostringstream notices;
  ApiClient api;
};

TEST(PairOfControllers, WhereBothAreDownItWaitsAndThenNamesBoth) {
  std::vector<http::Endpoint> gone;
  for (int i = 0; i < 2; ++i) {
    gone.push_back(FakeController(kActs).endpoint());
  }
  Client client(gone, milliseconds(1'500));
  const auto answer = client.api.get("/runs");
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message, AllOf(HasSubstr(gone[0].url()), HasSubstr(gone[1].url())));
  EXPECT_THAT(client.notices.str(), HasSubstr("no controller answers just now; waiting"));
}

TEST(PairOfControllers, TheActingOneIsCalledWithANotice) {
  FakeController acting(kActs);
  FakeController second([&](const http::Request&) { return standby(acting.url()); });
  Client client({second.endpoint(), acting.endpoint()});
  ASSERT_TRUE(client.api.post("/runs/1/pause", json::object()).has_value());
  EXPECT_THAT(client.notices.str(),
              HasSubstr(fmt::format("{} is on standby; {} is active and received the request",
                                    second.url(), acting.url())));
  // From then on it is the first one.
  ASSERT_TRUE(client.api.get("/runs").has_value());
  EXPECT_THAT(second.asked(), SizeIs(1));
  EXPECT_THAT(acting.asked(), SizeIs(2));
}

TEST(PairOfControllers, TheOneThatIsNamedIsQueriedAlthoughItWasNotGiven) {
  FakeController acting(kActs);
  FakeController second([&](const http::Request&) { return standby(acting.url()); });
  Client client({second.endpoint()});
  EXPECT_TRUE(client.api.get("/runs").has_value());
  EXPECT_THAT(client.notices.str(), HasSubstr("is active and received the request"));
}

TEST(PairOfControllers, TwoThatNameEachOtherAreAskedOnceEach) {
  std::string first_url;
  FakeController second([&](const http::Request&) { return standby(first_url); });
  FakeController first([&](const http::Request&) { return standby(second.url()); });
  first_url = first.url();
  Client client({first.endpoint()});
  const auto failed = client.api.get("/runs");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().exit_code, kRefused);
  EXPECT_FALSE(client.api.answered());
  EXPECT_THAT(first.asked(), SizeIs(1));
  EXPECT_THAT(second.asked(), SizeIs(1));
}

TEST(PairOfControllers, OneThatIsGoneIsPassedOver) {
  FakeController acting(kActs);
  const auto nobody = http::parse_endpoint("http://127.0.0.1:1").value();
  Client client({nobody, acting.endpoint()});
  EXPECT_TRUE(client.api.post("/plans/1/apply", json::object()).has_value());
  EXPECT_THAT(client.notices.str(), HasSubstr("http://127.0.0.1:1 does not answer"));
}

TEST(PairOfControllers, OneThatTakesOverIsWaitedFor) {
  int asked = 0;
  FakeController taking_over(
      [&](const http::Request& request) { return ++asked < 3 ? standby() : kActs(request); });
  const auto nobody = http::parse_endpoint("http://127.0.0.1:1").value();
  Client client({nobody, taking_over.endpoint()}, std::chrono::seconds(30));
  EXPECT_TRUE(client.api.post("/plans/1/apply", json::object()).has_value());
  EXPECT_THAT(client.notices.str(), HasSubstr("waiting for one of them to take over"));
  Client impatient({nobody, taking_over.endpoint()});
  asked = 0;
  const auto failed = impatient.api.get("/runs");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().exit_code, kRefused);
  EXPECT_THAT(failed.error().message, AllOf(HasSubstr("is on standby"), HasSubstr("127.0.0.1:1")));
}

TEST(PairOfControllers, AChangeWithoutAnswerIsRepeatedUnderItsKeyAlone) {
  FakeController dying(dies);
  FakeController other(kActs);
  {
    Client client({dying.endpoint(), other.endpoint()});
    EXPECT_TRUE(client.api.post("/plans/1/apply", json::object()).has_value());
    ASSERT_THAT(dying.asked(), SizeIs(1));
    ASSERT_THAT(other.asked(), SizeIs(1));
    const auto first = dying.asked();
    const auto second = other.asked();
    ASSERT_TRUE(first[0].headers.get("Idempotency-Key").has_value());
    EXPECT_EQ(first[0].headers.get("Idempotency-Key"), second[0].headers.get("Idempotency-Key"));
  }
  // The answer that has a secret is kept under no key: a second token would open something, too.
  Client client({dying.endpoint(), other.endpoint()});
  const auto token = client.api.post("/tokens", {{"name", "ann"}});
  ASSERT_FALSE(token.has_value());
  EXPECT_EQ(token.error().exit_code, kStillWaiting);
  EXPECT_THAT(other.asked(), SizeIs(1));
}

TEST(PairOfControllers, ARefusalOfTheRepeatedRequestIsNotTakenForTheFirstOnes) {
  FakeController dying(dies);
  FakeController other([](const http::Request&) {
    return answer(409, {{"code", "run_active"}, {"detail", "run 17 is active"}});
  });
  Client client({dying.endpoint(), other.endpoint()});
  const auto failed = client.api.post("/plans/1/apply", json::object());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().exit_code, kStillWaiting);
  EXPECT_THAT(failed.error().message,
              AllOf(HasSubstr("run 17 is active"), HasSubstr("may or may not")));
}

TEST(PairOfControllers, AreGivenInOneOptionOrSeveral) {
  FakeController acting([](const http::Request&) {
    return answer(200, {{"runs", json::array()}, {"next_cursor", nullptr}});
  });
  const auto both = "http://127.0.0.1:1," + acting.url();
  const auto said = [&](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "verger");
    std::ostringstream out, err;
    const int status = run_verger(static_cast<int>(arguments.size()), arguments.data(), out, err);
    return fmt::format("{} {}", status, err.str());
  };
  EXPECT_THAT(said({"--controller", both.c_str(), "run", "list"}), HasSubstr("0 verger: http"));
  EXPECT_THAT(said({"--controller", "http://127.0.0.1:1", "--controller", acting.url().c_str(),
                    "run", "list"}),
              HasSubstr("0 verger: http"));
  EXPECT_THAT(said({"--controller", "http://127.0.0.1:1,http://10.0.0.1", "run", "list"}),
              AllOf(HasSubstr("64 "), HasSubstr("http://10.0.0.1: plain HTTP")));
}

TEST(RunWatch, OfARunThatLeavesDifferingNodesIsNoSuccess) {
  FakeController acting([](const http::Request& request) {
    if (request.target.starts_with("/api/v1/events")) {
      return answer(200, {{"events", json::array()}, {"next", 1}});
    }
    return answer(200, {{"id", "0123456789abcdef"},
                        {"operation", "scavenge"},
                        {"state", "done-with-differences"},
                        {"stages", json::array()},
                        {"alerts", json::array()},
                        {"report",
                         {{"nodes", json::array()},
                          {"readable_equal", false},
                          {"differences", {"what clients can read differs: n1 against n3"}},
                          {"notes", json::array()}}}});
  });
  const char* arguments[] = {"verger", "--controller", acting.url().c_str(),
                             "run",    "watch",        "0123456789abcdef"};
  std::ostringstream out, err;
  EXPECT_EQ(run_verger(6, arguments, out, err), kFailed) << err.str();
  EXPECT_THAT(out.str(), AllOf(HasSubstr("DIFFERENT on the nodes"),
                               HasSubstr("difference: what clients can read differs: n1"),
                               HasSubstr("docs/operations/digests.md")));
}

}  // namespace
}  // namespace verger::cli
