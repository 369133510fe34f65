#include <gtest/gtest.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/frame_transport.h"
#include "tests/integration/http/loopback.h"

namespace verger::http::test {
namespace {

using namespace std::chrono_literals;
using namespace net::experimental::awaitable_operators;

Bytes frame_of(std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<std::byte>(i * 31 >> 3);
  }
  return out;
}

class Frames : public testing::Test, public Loopback {
 public:
  void serve(FrameHandler handler, FrameAcceptorOptions options = {}) {
    acceptor = std::make_unique<FrameAcceptor>(context.get_executor(), options, std::move(handler),
                                               null_log());
    auto listening = acceptor->listen();
    ASSERT_TRUE(listening.has_value()) << listening.error().message;
    endpoint = *listening;
  }
  static FrameHandler echo() {
    return [](std::shared_ptr<FrameConnection> connection) -> net::awaitable<void> {
      while (true) {
        auto frame = co_await connection->receive();
        if (!frame.has_value() || !(co_await connection->send(std::move(*frame))).has_value()) {
          co_return;
        }
      }
    };
  }
  std::unique_ptr<FrameAcceptor> acceptor;
  Endpoint endpoint;
  TcpFrameTransport transport{context.get_executor()};
};

TEST_F(Frames, ArriveWholeAndInOrder) {
  serve(echo());
  run([](Frames& t) -> net::awaitable<void> {
    auto connection = co_await t.transport.connect(t.endpoint, 5s);
    EXPECT_TRUE(connection.has_value());
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{70000}, FrameConnection::kMaxFrameSize}) {
      auto [sent, received] =
          co_await ((*connection)->send(frame_of(size)) && (*connection)->receive());
      EXPECT_TRUE(sent.has_value());
      EXPECT_TRUE(received.has_value() && *received == frame_of(size)) << size;
    }
    const auto large = co_await (*connection)->send(frame_of(FrameConnection::kMaxFrameSize + 1));
    EXPECT_EQ(large.error().code, Errc::kInvalidArgument);
    co_await t.acceptor->stop(1s);
    EXPECT_EQ((co_await (*connection)->receive()).error().code, Errc::kUnavailable);
  }(*this));
}

TEST_F(Frames, EndEveryWaitWhenClosed) {
  serve(echo());
  run([](Frames& t) -> net::awaitable<void> {
    auto connection = co_await t.transport.connect(t.endpoint, 5s);
    auto close = [](std::shared_ptr<FrameConnection> open) -> net::awaitable<void> {
      open->close();
      co_return;
    };
    const auto received = co_await ((*connection)->receive() && close(*connection));
    EXPECT_EQ(received.error().code, Errc::kUnavailable);
    EXPECT_EQ((co_await (*connection)->send({})).error().code, Errc::kUnavailable);
    co_await t.acceptor->stop(1s);
  }(*this));
}

TEST_F(Frames, TellAStrangerWhereItIs) {
  serve(echo());
  run([](Frames& t) -> net::awaitable<void> {
    const auto browser = co_await RawPeer::connect(t.endpoint);
    co_await browser->write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto text = co_await browser->read_until("\r\n");
    EXPECT_TRUE(text.contains("Verger's replication protocol")) << text;
    browser->close();
    const auto old = co_await RawPeer::connect(t.endpoint);
    const auto hello = encode_hello({.version = 9, .status = 0});
    co_await old->write(std::string(as_text(hello)));
    const auto refused = co_await old->read_until(std::string("\x01\0\x01\0", 4));
    EXPECT_EQ(refused, as_text(encode_hello({.version = 1, .status = 1})));
    old->close();
    co_await t.acceptor->stop(1s);
  }(*this));
}

TEST_F(Frames, AreRefusedByAnythingElseWithAClearText) {
  RawServer stranger(context);
  run([](Frames& t, RawServer& other) -> net::awaitable<void> {
    auto answer = [](RawServer& server, std::string bytes) -> net::awaitable<void> {
      const auto peer = co_await server.accept();
      co_await peer->read_until(std::string(as_text(encode_hello({}))));
      co_await peer->write(bytes);
    };
    struct Case {
      std::string bytes;
      Errc code;
      std::string text;
    };
    const std::vector<Case> cases = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", Errc::kUnsupported, "HTTP"},
        {std::string("\x16\x03\x03\x00\x02\x02\x28", 7), Errc::kUnsupported, "TLS"},
        // A real server's TCP package: length, heartbeat request, flags, correlation id.
        {std::string("\x12\0\0\0\x01\0", 6) + std::string(16, '\7'), Errc::kUnsupported,
         "12 00 00 00 01"},
        {std::string(as_text(encode_hello({.version = 2, .status = 1}))), Errc::kUnsupported,
         "version 2"},
        {"", Errc::kUnavailable, "no hello"},
    };
    for (const auto& [bytes, code, text] : cases) {
      const auto connection =
          co_await (t.transport.connect(other.endpoint(), 5s) && answer(other, bytes));
      EXPECT_EQ(connection.error().code, code) << connection.error().message;
      EXPECT_TRUE(connection.error().message.contains(text)) << connection.error().message;
    }
    auto [silent, peer] = co_await (t.transport.connect(other.endpoint(), 3s) && other.accept());
    EXPECT_EQ(silent.error().code, Errc::kUnavailable);
    EXPECT_TRUE(silent.error().message.contains("no hello of a Verger node: no answer in time"))
        << silent.error().message;
  }(*this, stranger));
}

TEST_F(Frames, EndWithCorruptionWhenALengthIsImpossible) {
  Errc seen{};
  serve([&seen](std::shared_ptr<FrameConnection> connection) -> net::awaitable<void> {
    seen = (co_await connection->receive()).error().code;
  });
  run([](Frames& t) -> net::awaitable<void> {
    const auto peer = co_await RawPeer::connect(t.endpoint);
    co_await peer->write(std::string(as_text(encode_hello({}))) + "\xff\xff\xff\xff");
    co_await peer->read_to_end();
    co_await t.acceptor->stop(1s);
  }(*this));
  EXPECT_EQ(seen, Errc::kCorruption);
}

}  // namespace
}  // namespace verger::http::test
