#pragma once

#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"

namespace verger::http::test {

/// One thread, one context; the test's coroutine runs on it beside the servers it uses.
class Loopback {
 public:
  /// Runs `work` to its end; fails the test when that takes more than 20 s.
  void run(net::awaitable<void> work);
  net::io_context context{1};
};

/// A connection on which a test says what it wants, byte by byte.
class RawPeer {
 public:
  explicit RawPeer(net::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  static net::awaitable<std::shared_ptr<RawPeer>> connect(Endpoint to);
  net::awaitable<void> write(std::string bytes);
  /// Until `end` is in what was read (all of it is returned and forgotten), or the connection ends.
  net::awaitable<std::string> read_until(std::string end);
  net::awaitable<std::string> read_to_end();
  /// With a reset instead of an orderly end.
  void abort();
  void close() { socket_.close(); }
  /// Ends in order; returns when the other side's kernel has seen it.
  net::awaitable<void> finish();

 private:
  net::ip::tcp::socket socket_;
  std::string buffer_;
};

/// Accepts connections for a test that plays the server itself.
class RawServer {
 public:
  explicit RawServer(net::io_context& context);
  [[nodiscard]] Endpoint endpoint() const;
  net::awaitable<std::shared_ptr<RawPeer>> accept();
  void close() { acceptor_.close(); }

 private:
  net::ip::tcp::acceptor acceptor_;
};

net::awaitable<void> pause(std::chrono::milliseconds time);

}  // namespace verger::http::test
