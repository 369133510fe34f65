#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/beast_client.h"
#include "tests/integration/http/loopback.h"

namespace verger::http::test {
namespace {

using namespace std::chrono_literals;
using namespace net::experimental::awaitable_operators;

constexpr auto kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A clock that a test moves.
class HandClock final : public Clock {
 public:
  Ticks now() override { return {}; }
  Monotonic monotonic() override { return at; }
  Monotonic at{};
};

class HttpClient : public testing::Test, public Loopback {
 public:
  net::awaitable<Result<Response>> get(std::chrono::milliseconds deadline = 5s) {
    return client.send(server.endpoint(), Request{.target = "/info"}, deadline);
  }
  net::awaitable<Result<Response>> post(std::chrono::milliseconds deadline = 5s) {
    return client.send(server.endpoint(), Request{.method = "POST", .target = "/admin/scavenge"},
                       deadline);
  }
  /// Answers one request on a new connection and gives the connection.
  net::awaitable<std::shared_ptr<RawPeer>> accept_and_answer() {
    auto peer = co_await server.accept();
    co_await peer->read_until("\r\n\r\n");
    co_await peer->write(kOk);
    co_return peer;
  }
  RawServer server{context};
  HandClock clock;
  BeastClient client{context.get_executor(), {}, clock};
};

TEST_F(HttpClient, KeepsAConnectionAndSendsWhatServersWant) {
  run([](HttpClient& t) -> net::awaitable<void> {
    auto serve = [](HttpClient& u) -> net::awaitable<std::string> {
      const auto peer = co_await u.server.accept();
      auto first = co_await peer->read_until("\r\n\r\n");
      co_await peer->write(kOk);
      auto second = co_await peer->read_until("\r\n\r\n");
      co_await peer->write("HTTP/1.1 400 Wrong expected EventNumber\r\nContent-Length: 0\r\n\r\n");
      co_return first + second;
    };
    auto ask = [](HttpClient& u) -> net::awaitable<void> {
      const auto first = co_await u.get();
      EXPECT_EQ(first->body, "ok");
      const auto second = co_await u.post();
      EXPECT_EQ(second->status, 400);
      EXPECT_EQ(second->reason, "Wrong expected EventNumber");
    };
    const auto seen = co_await (serve(t) && ask(t));
    const auto host = "Host: 127.0.0.1:" + std::to_string(t.server.endpoint().port) + "\r\n";
    EXPECT_EQ(seen, "GET /info HTTP/1.1\r\n" + host + "Accept: application/json\r\n\r\n" +
                        "POST /admin/scavenge HTTP/1.1\r\n" + host +
                        "Accept: application/json\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(t.client.counts().connections_made, 1U);
  }(*this));
}

TEST_F(HttpClient, ReportsUnavailableWhenNothingListens) {
  const auto endpoint = server.endpoint();
  server.close();
  run([](HttpClient& t, Endpoint to) -> net::awaitable<void> {
    const auto answer = co_await t.client.send(to, Request{.method = "POST"}, 5s);
    EXPECT_EQ(answer.error().code, Errc::kUnavailable);
    EXPECT_TRUE(answer.error().message.contains(to.url())) << answer.error().message;
    const auto nowhere =
        co_await t.client.send(Endpoint{false, "no-such-host.invalid", 1}, Request{}, 5s);
    EXPECT_EQ(nowhere.error().code, Errc::kUnavailable);
  }(*this, endpoint));
}

TEST_F(HttpClient, SaysUnknownWhenTheServerEndsWithoutAnAnswer) {
  run([](HttpClient& t) -> net::awaitable<void> {
    for (const std::string_view before_the_end :
         {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal",
          "220 mail.example.com ESMTP\r\n", "HTTP/1.1 100 Continue\r\n\r\n"}) {
      for (const bool is_post : {true, false}) {
        for (const bool reset : {true, false}) {
          auto serve = [](HttpClient& u, std::string text, bool abort) -> net::awaitable<void> {
            const auto peer = co_await u.server.accept();
            co_await peer->read_until("\r\n\r\n");
            co_await peer->write(text);
            if (abort) {
              peer->abort();
            }
          };
          const auto answer = co_await ((is_post ? t.post() : t.get()) &&
                                        serve(t, std::string(before_the_end), reset));
          EXPECT_FALSE(answer.has_value()) << before_the_end;
          EXPECT_EQ(answer.error().code, Errc::kUnknownOutcome) << answer.error().message;
        }
      }
    }
  }(*this));
}

TEST_F(HttpClient, SaysUnknownWhenNoAnswerComesInTime) {
  run([](HttpClient& t) -> net::awaitable<void> {
    // On a kept connection the request is out before any time can pass.
    auto [first, peer] = co_await (t.get() && t.accept_and_answer());
    const auto answer = co_await t.post(50ms);
    EXPECT_EQ(answer.error().code, Errc::kUnknownOutcome);
    EXPECT_TRUE(answer.error().message.contains("no answer in time")) << answer.error().message;
    EXPECT_TRUE((co_await peer->read_to_end()).starts_with("POST /admin/scavenge "));
    EXPECT_EQ(t.client.counts().connections_made, 1U);
  }(*this));
}

TEST_F(HttpClient, DoesNotUseAConnectionThatItsPeerHasClosed) {
  run([](HttpClient& t) -> net::awaitable<void> {
    auto [first, peer] = co_await (t.get() && t.accept_and_answer());
    EXPECT_TRUE(first.has_value());
    co_await peer->finish();
    auto [second, other] = co_await (t.post() && t.accept_and_answer());
    EXPECT_TRUE(second.has_value());
    EXPECT_EQ(t.client.counts().connections_made, 2U);
    EXPECT_EQ(t.client.counts().requests_sent, 2U);
    EXPECT_EQ(t.client.counts().repeated, 0U);
  }(*this));
}

TEST_F(HttpClient, RepeatsAReadButNoCommandWhenAKeptConnectionBreaks) {
  run([](HttpClient& t) -> net::awaitable<void> {
    auto [first, peer] = co_await (t.get() && t.accept_and_answer());
    auto drop = [](std::shared_ptr<RawPeer> kept) -> net::awaitable<void> {
      co_await kept->read_until("\r\n\r\n");
      kept->abort();
    };
    auto [read, other] = co_await (t.get() && drop(peer) && t.accept_and_answer());
    EXPECT_TRUE(read.has_value());
    EXPECT_EQ(t.client.counts().repeated, 1U);
    const auto command = co_await (t.post() && drop(other));
    EXPECT_EQ(command.error().code, Errc::kUnknownOutcome);
    EXPECT_EQ(t.client.counts().repeated, 1U);
    EXPECT_EQ(t.client.counts().connections_made, 2U);
  }(*this));
}

TEST_F(HttpClient, EndsConnectionsByAgeAndOnRequest) {
  run([](HttpClient& t) -> net::awaitable<void> {
    auto [first, one] = co_await (t.get() && t.accept_and_answer());
    for (int minute = 0; minute < 9; ++minute) {
      t.clock.at += 20s;  // used often enough to stay
      auto again = [](std::shared_ptr<RawPeer> peer) -> net::awaitable<void> {
        co_await peer->read_until("\r\n\r\n");
        co_await peer->write(kOk);
      };
      EXPECT_TRUE((co_await (t.get() && again(one))).has_value());
    }
    EXPECT_EQ(t.client.counts().connections_made, 1U);
    t.clock.at += 31s;  // idle for too long
    auto [second, two] = co_await (t.get() && t.accept_and_answer());
    t.client.drop_connections();
    auto [third, three] = co_await (t.get() && t.accept_and_answer());
    EXPECT_EQ(t.client.counts().connections_made, 3U);
    EXPECT_EQ(co_await one->read_to_end(), "");
  }(*this));
}

TEST_F(HttpClient, ClosesWhatIsNotUsedWhenAskedTo) {
  run([](HttpClient& t) -> net::awaitable<void> {
    auto [first, one] = co_await (t.get() && t.accept_and_answer());
    t.client.close_unused();
    auto again = [](std::shared_ptr<RawPeer> peer) -> net::awaitable<void> {
      co_await peer->read_until("\r\n\r\n");
      co_await peer->write(kOk);
    };
    EXPECT_TRUE((co_await (t.get() && again(one))).has_value()) << "it was used a moment ago";
    t.clock.at += 31s;
    t.client.close_unused();
    EXPECT_EQ(co_await one->read_to_end(), "") << "closed without another request";
  }(*this));
}

TEST_F(HttpClient, KeepsAsManyUnusedConnectionsForLongerAsItMay) {
  const auto kept = std::make_shared<KeptConnections>(1, 70s);
  const BeastClientOptions options{.idle_lifetime = 5s, .kept = kept};
  std::vector<std::unique_ptr<BeastClient>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<BeastClient>(context.get_executor(), options, clock));
  }
  run([](HttpClient& t, BeastClient& first, BeastClient& second) -> net::awaitable<void> {
    const auto ask = [](HttpClient& u,
                        BeastClient& from) -> net::awaitable<std::shared_ptr<RawPeer>> {
      auto [answer, peer] =
          co_await (from.send(u.server.endpoint(), Request{}, 5s) && u.accept_and_answer());
      EXPECT_TRUE(answer.has_value());
      co_return peer;
    };
    auto one = co_await ask(t, first);
    auto two = co_await ask(t, second);
    t.clock.at += 60s;
    first.close_unused();
    second.close_unused();
    EXPECT_EQ(co_await two->read_to_end(), "") << "there is one place";
    auto again = [](std::shared_ptr<RawPeer> peer) -> net::awaitable<void> {
      co_await peer->read_until("\r\n\r\n");
      co_await peer->write(kOk);
    };
    EXPECT_TRUE(
        (co_await (first.send(t.server.endpoint(), Request{}, 5s) && again(one))).has_value());
    EXPECT_EQ(first.counts().connections_made, 1U);
    t.clock.at += 71s;
    first.close_unused();
    EXPECT_EQ(co_await one->read_to_end(), "");
    // Its place is free for another.
    two = co_await ask(t, second);
    t.clock.at += 60s;
    EXPECT_TRUE(
        (co_await (second.send(t.server.endpoint(), Request{}, 5s) && again(two))).has_value());
    EXPECT_EQ(second.counts().connections_made, 2U);
  }(*this, *clients[0], *clients[1]));
}

TEST_F(HttpClient, KeepsAConnectionNoLongerThanItsLifetime) {
  BeastClient short_lived{context.get_executor(),
                          BeastClientOptions{.connection_lifetime = 10ms, .idle_lifetime = 1h},
                          clock};
  run([](HttpClient& t, BeastClient& c) -> net::awaitable<void> {
    auto [first, one] =
        co_await (c.send(t.server.endpoint(), Request{}, 5s) && t.accept_and_answer());
    t.clock.at += 11ms;
    auto [second, two] =
        co_await (c.send(t.server.endpoint(), Request{}, 5s) && t.accept_and_answer());
    EXPECT_TRUE(second.has_value());
    EXPECT_EQ(c.counts().connections_made, 2U);
  }(*this, short_lived));
}

TEST_F(HttpClient, RefusesAnAnswerThatIsTooLarge) {
  BeastClient small{context.get_executor(), BeastClientOptions{.response_bytes = 10}, clock};
  run([](HttpClient& t, BeastClient& c) -> net::awaitable<void> {
    auto serve = [](HttpClient& u) -> net::awaitable<void> {
      const auto peer = co_await u.server.accept();
      co_await peer->read_until("\r\n\r\n");
      co_await peer->write("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890");
    };
    const auto answer = co_await (c.send(t.server.endpoint(), Request{}, 5s) && serve(t));
    EXPECT_EQ(answer.error().code, Errc::kUnknownOutcome);
    EXPECT_TRUE(answer.error().message.contains("larger than 10 bytes")) << answer.error().message;
  }(*this, small));
}

}  // namespace
}  // namespace verger::http::test
