#include "nodeagent/http/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/timers.h"
#include "tests/integration/http/loopback.h"

namespace verger::http::test {
namespace {

using namespace std::chrono_literals;

Handler echo() {
  return [](Request request) -> net::awaitable<Response> {
    if (request.target == "/throw") {
      throw std::runtime_error("as asked");
    }
    if (request.target == "/none") {
      co_return Response{.status = 204};
    }
    co_return Response{.status = 200,
                       .headers = {{"X-Peer", request.peer.address}},
                       .body = request.method + " " + request.target + " " + request.body};
  };
}

class HttpServer : public testing::Test, public Loopback {
 public:
  void serve(Handler handler, ServerLimits limits = {},
             std::function<bool(const Request&)> knows = {}) {
    server = std::make_unique<Server>(context.get_executor(),
                                      ServerOptions{.limits = limits, .knows = std::move(knows)},
                                      std::move(handler), null_log());
    auto listening = server->listen();
    ASSERT_TRUE(listening.has_value()) << listening.error().message;
    endpoint = *listening;
  }
  std::unique_ptr<Server> server;
  Endpoint endpoint;
};

TEST_F(HttpServer, AnswersPipelinedRequestsInOrderOnOneConnection) {
  serve(echo());
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto peer = co_await RawPeer::connect(t.endpoint);
    co_await peer->write(
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
        "GET /b HTTP/1.1\r\nHost: x\r\n\r\n"
        "HEAD /c HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const auto all = co_await peer->read_to_end();
    EXPECT_EQ(all,
              "HTTP/1.1 200 OK\r\nX-Peer: 127.0.0.1\r\nContent-Length: 10\r\n\r\nPOST /a hi"
              "HTTP/1.1 200 OK\r\nX-Peer: 127.0.0.1\r\nContent-Length: 7\r\n\r\nGET /b "
              "HTTP/1.1 200 OK\r\nX-Peer: 127.0.0.1\r\nContent-Length: 8\r\n\r\n"
              "HTTP/1.1 204 No Content\r\n\r\n"
              "HTTP/1.1 200 OK\r\nX-Peer: 127.0.0.1\r\nContent-Length: 7\r\nConnection: close\r\n"
              "\r\nGET /d ");
    co_await t.server->stop(1s);
  }(*this));
}

bool shows_a_token(const Request& head) { return head.headers.get("Authorization").has_value(); }

TEST_F(HttpServer, WhoIsNotKnownSendsLittle) {
  serve(echo(), ServerLimits{.unknown_body_bytes = 1000}, shows_a_token);
  run([](HttpServer& t) -> net::awaitable<void> {
    const std::string large(5000, 'x');
    const auto sized = fmt::format("Content-Length: {}\r\n\r\n{}", large.size(), large);
    const auto chunked = fmt::format("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                                     large.size(), large);
    for (const auto& body : {sized, chunked}) {
      const auto unknown = co_await RawPeer::connect(t.endpoint);
      co_await unknown->write("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + body);
      EXPECT_TRUE((co_await unknown->read_to_end()).starts_with("HTTP/1.1 413"));
      const auto known = co_await RawPeer::connect(t.endpoint);
      co_await known->write(
          "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: y\r\n"
          "Connection: close\r\n" +
          body);
      EXPECT_TRUE((co_await known->read_to_end()).starts_with("HTTP/1.1 200"));
    }
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, UnknownClientsTakeFewConnectionsAndNoneOfOthers) {
  serve(echo(), ServerLimits{.unknown_connections = 2}, shows_a_token);
  run([](HttpServer& t) -> net::awaitable<void> {
    const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n";
    const auto known = co_await RawPeer::connect(t.endpoint);
    co_await known->write(get + "Authorization: y\r\n\r\n");
    co_await known->read_until("GET / ");
    const auto first = co_await RawPeer::connect(t.endpoint);
    co_await first->write(get + "\r\n");
    co_await first->read_until("GET / ");
    const auto second = co_await RawPeer::connect(t.endpoint);
    co_await second->write(get + "\r\n");
    co_await second->read_until("GET / ");
    // The one that has waited longest makes room.
    const auto third = co_await RawPeer::connect(t.endpoint);
    co_await third->write(get + "\r\n");
    EXPECT_FALSE((co_await third->read_until("GET / ")).empty());
    EXPECT_EQ(co_await first->read_to_end(), "");
    co_await known->write(get + "Authorization: y\r\n\r\n");
    EXPECT_FALSE((co_await known->read_until("GET / ")).empty());
    // Two that are in the middle of a request leave none.
    co_await second->write(get);
    co_await third->write(get);
    while (t.server->busy_connection_count() < 2) {
      co_await pause(1ms);
    }
    const auto fourth = co_await RawPeer::connect(t.endpoint);
    EXPECT_TRUE((co_await fourth->read_to_end()).starts_with("HTTP/1.1 503"));
    co_await t.server->stop(0s);
  }(*this));
}

TEST_F(HttpServer, SaysWhatIsWrongWithARequestAndCloses) {
  serve(echo(), ServerLimits{.header_bytes = 1000, .body_bytes = 1000});
  run([](HttpServer& t) -> net::awaitable<void> {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"GET /\x01 nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
        {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
        {"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(5000, 'x'),
         "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(100000, 'x'),
         "HTTP/1.1 413 Content Too Large\r\n"},
    };
    for (const auto& [bytes, start] : cases) {
      const auto peer = co_await RawPeer::connect(t.endpoint);
      co_await peer->write(bytes);
      const auto answer = co_await peer->read_to_end();
      EXPECT_TRUE(answer.starts_with(start)) << answer;
      EXPECT_TRUE(answer.contains("Connection: close\r\n")) << answer;
    }
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, TurnsAnExceptionInto500AndGoesOn) {
  serve(echo());
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto peer = co_await RawPeer::connect(t.endpoint);
    co_await peer->write("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE((co_await peer->read_until("\r\n\r\n")).starts_with("HTTP/1.1 500 "));
    co_await peer->write("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE((co_await peer->read_until("GET /a ")).starts_with("HTTP/1.1 200 "));
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, EndsASlowRequestWith408) {
  serve(echo(), ServerLimits{.idle = 1h, .read = 60ms, .linger = 10ms});
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto slow = co_await RawPeer::connect(t.endpoint);
    co_await slow->write("POST / HTTP/1.1\r\nHost: x\r\nContent-Le");
    EXPECT_TRUE((co_await slow->read_to_end()).starts_with("HTTP/1.1 408 "));
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, KeepsAConnectionWhoseRequestCameInTime) {
  serve(echo(), ServerLimits{.idle = 1h, .read = 60ms, .linger = 10ms});
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto quick = co_await RawPeer::connect(t.endpoint);
    co_await quick->write("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    co_await quick->read_until("GET /a ");
    // Once this one, which began later, is too late, so would have been the one above.
    const auto slow = co_await RawPeer::connect(t.endpoint);
    co_await slow->write("GET /b HTTP/1.1\r\n");
    EXPECT_TRUE((co_await slow->read_to_end()).starts_with("HTTP/1.1 408 "));
    co_await quick->write("GET /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE((co_await quick->read_to_end()).ends_with("GET /c "));
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, EndsAnIdleConnectionSilently) {
  serve(echo(), ServerLimits{.idle = 60ms, .read = 1h});
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto idle = co_await RawPeer::connect(t.endpoint);
    EXPECT_EQ(co_await idle->read_to_end(), "");
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, AsksForABodyThatWaitsToBeAskedFor) {
  serve(echo());
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto peer = co_await RawPeer::connect(t.endpoint);
    co_await peer->write(
        "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(co_await peer->read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    co_await peer->write("hi");
    EXPECT_TRUE((co_await peer->read_until("POST /a hi")).ends_with("POST /a hi"));
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, RefusesMoreConnectionsThanItsLimit) {
  serve(echo(), ServerLimits{.connections = 1});
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto first = co_await RawPeer::connect(t.endpoint);
    co_await first->write("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    co_await first->read_until("GET /a ");
    const auto second = co_await RawPeer::connect(t.endpoint);
    EXPECT_TRUE(
        (co_await second->read_to_end()).starts_with("HTTP/1.1 503 Server Is Too Busy\r\n"));
    co_await first->write("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE((co_await first->read_until("GET /b ")).ends_with("GET /b "));
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, AnswersInTimeWhileTheHandlerContinues) {
  struct Late {
    bool may_end = false;
    bool has_ended = false;
  };
  auto late = std::make_shared<Late>();
  serve(
      [late](Request) -> net::awaitable<Response> {
        while (!late->may_end) {
          co_await pause(1ms);
        }
        late->has_ended = true;
        co_return Response{};
      },
      ServerLimits{.handler = 20ms});
  run([](HttpServer& t, std::shared_ptr<Late> handler) -> net::awaitable<void> {
    const auto peer = co_await RawPeer::connect(t.endpoint);
    co_await peer->write("POST /admin/scavenge HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    const auto answer = co_await peer->read_until("\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 Server was unable to handle request in time\r\n"))
        << answer;
    EXPECT_FALSE(handler->has_ended);
    handler->may_end = true;
    co_await t.server->stop(1h);  // its grace covers the late handler
    EXPECT_TRUE(handler->has_ended);
  }(*this, late));
}

TEST_F(HttpServer, StreamsPiecesUntilTheEmptyOne) {
  serve([](Request) -> net::awaitable<Response> {
    Response response{.headers = {{"Content-Type", "text/event-stream"}}};
    response.stream = [left = 2]() mutable -> net::awaitable<Result<std::string>> {
      co_return left-- > 0 ? "data: x\n\n" : "";
    };
    co_return response;
  });
  run([](HttpServer& t) -> net::awaitable<void> {
    const auto peer = co_await RawPeer::connect(t.endpoint);
    co_await peer->write("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(co_await peer->read_to_end(),
              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
              "\r\n9\r\ndata: x\n\n\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n");
    const auto old = co_await RawPeer::connect(t.endpoint);
    co_await old->write("GET /events HTTP/1.0\r\n\r\n");
    EXPECT_TRUE((co_await old->read_to_end()).ends_with("\r\n\r\ndata: x\n\ndata: x\n\n"));
    co_await t.server->stop(1s);
  }(*this));
}

TEST_F(HttpServer, EndsAStreamWhenItsClientLeavesAndWhenTheServerStops) {
  auto ended = std::make_shared<int>(0);
  serve([ended](Request) -> net::awaitable<Response> {
    Response response;
    response.stream = [ended, first = true]() mutable -> net::awaitable<Result<std::string>> {
      if (std::exchange(first, false)) {
        co_return "first";
      }
      struct Count {
        int& count;
        ~Count() { ++count; }
      } count{*ended};
      co_await system_timers().sleep_for(1h);
      co_return "never";
    };
    co_return response;
  });
  run([](HttpServer& t, std::shared_ptr<int> count) -> net::awaitable<void> {
    const auto leaves = co_await RawPeer::connect(t.endpoint);
    co_await leaves->write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    co_await leaves->read_until("first\r\n");
    leaves->close();
    while (t.server->connection_count() > 0) {
      co_await pause(1ms);
    }
    EXPECT_EQ(*count, 1);
    const auto stays = co_await RawPeer::connect(t.endpoint);
    co_await stays->write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    co_await stays->read_until("first\r\n");
    co_await t.server->stop(1h);  // a stream gets no grace
    EXPECT_EQ(*count, 2);
    EXPECT_EQ(t.server->connection_count(), 0U);
  }(*this, ended));
}

struct StoppedServer {
  int requests = 0;
  bool idle_is_closed = false;  ///< which the server does first
};

net::awaitable<void> watch_idle(std::shared_ptr<RawPeer> idle,
                                std::shared_ptr<StoppedServer> seen) {
  EXPECT_EQ(co_await idle->read_to_end(), "");
  seen->idle_is_closed = true;
}

TEST_F(HttpServer, StopsInOrder) {
  auto seen = std::make_shared<StoppedServer>();
  serve([seen](Request) -> net::awaitable<Response> {
    ++seen->requests;
    while (!seen->idle_is_closed) {
      co_await pause(1ms);
    }
    co_return Response{.body = "ended"};
  });
  run([](HttpServer& t, std::shared_ptr<StoppedServer> so_far) -> net::awaitable<void> {
    using namespace net::experimental::awaitable_operators;
    const auto idle = co_await RawPeer::connect(t.endpoint);
    const auto ends = co_await RawPeer::connect(t.endpoint);
    co_await ends->write("GET /ends HTTP/1.1\r\nHost: x\r\n\r\n");
    while (t.server->connection_count() < 2 || so_far->requests < 1) {
      co_await pause(1ms);
    }
    // No more of the grace passes than the request needs.
    co_await (t.server->stop(1h) && watch_idle(idle, so_far));
    EXPECT_EQ(t.server->connection_count(), 0U);
    const auto answer = co_await ends->read_to_end();
    EXPECT_TRUE(answer.contains("Connection: close") && answer.ends_with("ended")) << answer;
    bool refused = false;
    try {
      co_await RawPeer::connect(t.endpoint);
    } catch (const boost::system::system_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  }(*this, seen));
}

TEST_F(HttpServer, EndsAtItsStopWhatOutlivesTheGrace) {
  auto requests = std::make_shared<int>(0);
  serve([requests](Request) -> net::awaitable<Response> {
    ++*requests;
    co_await system_timers().sleep_for(1h);
    co_return Response{};
  });
  run([](HttpServer& t, std::shared_ptr<int> so_far) -> net::awaitable<void> {
    const auto hangs = co_await RawPeer::connect(t.endpoint);
    co_await hangs->write("GET /hangs HTTP/1.1\r\nHost: x\r\n\r\n");
    while (*so_far < 1) {
      co_await pause(1ms);
    }
    co_await t.server->stop(10ms);
    EXPECT_EQ(t.server->connection_count(), 0U);
    EXPECT_EQ(co_await hangs->read_to_end(), "");
  }(*this, requests));
}

TEST_F(HttpServer, SaysWhichPortIsInUse) {
  serve(echo());
  Server second(context.get_executor(), ServerOptions{.port = endpoint.port}, echo(), null_log());
  const auto listening = second.listen();
  ASSERT_FALSE(listening.has_value());
  EXPECT_EQ(listening.error().code, Errc::kConflict);
  EXPECT_TRUE(listening.error().message.contains("127.0.0.1:" + std::to_string(endpoint.port)))
      << listening.error().message;
  Server foreign(context.get_executor(), ServerOptions{.host = "192.0.2.1"}, echo(), null_log());
  EXPECT_EQ(foreign.listen().error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace verger::http::test
