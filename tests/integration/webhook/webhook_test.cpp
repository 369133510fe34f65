#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "controller/scheduler/detail/deliveries.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"
#include "tests/support/controller/controller_harness.h"

/// Notifications over a socket to a server that answers as chat services do. How long is waited for
/// what they ask is tested on virtual time, in unit_controller_scheduler.
namespace verger::controller {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class NoCredentials final : public CredentialStore {
 public:
  Result<Credentials> find(std::string_view) override { return Credentials{"", ""}; }
};

class Webhook : public ::testing::Test {
 protected:
  Webhook() {
    h_.boot();
    book_ = std::make_unique<PolicyBook>(*h_.journal, h_.epoch,
                                         test::ControllerHarness::quick_policy());
    server_ = std::make_unique<http::Server>(
        context_.get_executor(), http::ServerOptions{},
        [this](const http::Request& request) { return take(request); }, null_log());
    slack_.webhook = server_->listen().value().url() + "/hooks/secret";
    slack_.format = "slack";
    deliveries_ = std::make_shared<detail::Deliveries>(
        NotifierParts{.executor = context_.get_executor(),
                      .journal = *h_.journal,
                      .runs = *h_.executor,
                      .book = *book_,
                      .network = {.client = client_,
                                  .timers = h_.time,
                                  .clock = system_clock(),
                                  .credentials = no_credentials_,
                                  .log = null_log()},
                      .run_command = {}});
  }
  ~Webhook() override {
    deliveries_.reset();
    server_.reset();
    book_.reset();
    h_.crash();
  }

  net::awaitable<http::Response> take(http::Request request) {
    got_.push_back(std::move(request));
    co_return answer_;
  }
  detail::Deliveries::Attempt attempt(int status, http::Headers headers) {
    answer_ = {.status = status, .headers = std::move(headers)};
    auto done =
        net::co_spawn(context_,
                      detail::Deliveries::attempt(
                          deliveries_, slack_,
                          {{"id", "17-abcdef01"}, {"moment", "failed"}, {"reason", "n2 is down"}}),
                      net::use_future);
    context_.restart();
    while (done.wait_for(seconds(0)) != std::future_status::ready && context_.run_one() > 0) {
    }
    return done.get();
  }

  net::io_context context_{1};
  http::BeastClient client_{context_.get_executor(), {}};
  NoCredentials no_credentials_;
  test::ControllerHarness h_;
  std::unique_ptr<PolicyBook> book_;
  std::unique_ptr<http::Server> server_;
  Notification slack_;
  std::shared_ptr<detail::Deliveries> deliveries_;
  http::Response answer_;
  std::vector<http::Request> got_;
};

TEST_F(Webhook, IsDeliveredWithItsId) {
  EXPECT_TRUE(attempt(204, {}).done.has_value());
  ASSERT_EQ(got_.size(), 1U);
  EXPECT_EQ(got_[0].method + " " + got_[0].target, "POST /hooks/secret");
  EXPECT_EQ(got_[0].headers.get("Idempotency-Key"), "17-abcdef01");
  EXPECT_THAT(json::parse(got_[0].body).at("text").get<std::string>(),
              ::testing::HasSubstr("n2 is down"));
}

TEST_F(Webhook, LeavesAServiceAloneForAsLongAsItAsks) {
  const auto limited = attempt(429, {{"Retry-After", "30"}});
  EXPECT_EQ(limited.done.error().message, "it answered 429");
  EXPECT_EQ(limited.leave_alone, seconds(30));
  EXPECT_EQ(attempt(503, {{"Retry-After", "120"}}).leave_alone, seconds(120));
  EXPECT_EQ(attempt(503, {{"Date", "Sun, 22 Nov 2026 12:00:00 GMT"},
                          {"Retry-After", "Sun, 22 Nov 2026 12:01:00 GMT"}})
                .leave_alone,
            seconds(60));
  EXPECT_GT(attempt(429, {{"Retry-After", "Fri, 01 Jan 2100 00:00:00 GMT"}}).leave_alone,
            seconds(3'600));
}

TEST_F(Webhook, HearsNothingElseAsSuchAWish) {
  EXPECT_EQ(attempt(429, {}).leave_alone, seconds(0));
  EXPECT_EQ(attempt(503, {{"Retry-After", "soon"}}).leave_alone, seconds(0));
  EXPECT_EQ(attempt(500, {{"Retry-After", "30"}}).leave_alone, seconds(0));
  EXPECT_EQ(attempt(204, {{"Retry-After", "30"}}).leave_alone, seconds(0));
}

}  // namespace
}  // namespace verger::controller
