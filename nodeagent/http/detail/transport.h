#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"

namespace verger::http {

/// Waits for an operation and gives what its handler would get, the error first.
inline constexpr auto kTuple = net::as_tuple(net::use_awaitable);

/// TCP, or a Unix domain socket.
using StreamSocket = net::generic::stream_protocol::socket;
using StreamAcceptor = net::basic_socket_acceptor<net::generic::stream_protocol>;

/// The outcome of a read or write. `timed_out` distinguishes the deadline from other ends.
struct IoResult {
  boost::system::error_code error;
  std::size_t bytes = 0;
  bool timed_out = false;
  /// The other side ended the connection in order, or pulled the plug.
  [[nodiscard]] bool closed_by_peer() const;
  /// For a person: "no answer in time", "the connection was closed".
  [[nodiscard]] std::string text() const;
};

/// A connected byte stream, plain or TLS. One reader and one writer at a time; everything on the
/// executor of its socket, which is a strand or belongs to a single thread.
class Transport : public std::enable_shared_from_this<Transport> {
 public:
  virtual ~Transport() = default;
  virtual net::awaitable<IoResult> read_some(net::mutable_buffer into) = 0;
  /// All of it; `bytes` says how much left this process before an error.
  virtual net::awaitable<IoResult> write(net::const_buffer from) = 0;
  /// Ends the sending direction in order (TLS: close_notify, then TCP).
  virtual net::awaitable<void> finish_sending() = 0;
  /// True while nothing has arrived unasked, not even the end: it may carry another request.
  virtual bool quiet() = 0;
  [[nodiscard]] const Peer& peer() const { return peer_; }

  /// The one limit for all reads and writes from now on. When it passes, those under way and all
  /// later ones fail with timed_out, until a new limit is set.
  void expires_at(std::chrono::steady_clock::time_point limit);
  void expires_after(std::chrono::steady_clock::duration limit);
  /// No limit, and no timer that would keep an executor at work.
  void never_expires();
  /// No limit until the next one is set, which is soon: the timer is left alone.
  void suspend_limit() { limit_ = kNever; }
  /// Every read and write under way, and every later one, fails.
  void close();

 protected:
  explicit Transport(StreamSocket socket);
  IoResult finish(boost::system::error_code error, std::size_t bytes) const;
  StreamSocket& socket() { return socket_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  Peer peer_;

 private:
  static constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  void look_at(std::chrono::steady_clock::time_point time);

  StreamSocket socket_;
  net::steady_timer timer_;
  std::chrono::steady_clock::time_point limit_ = kNever;
  std::chrono::steady_clock::time_point next_look_ = kNever;  ///< when the timer ends
  bool timed_out_ = false;
};

std::shared_ptr<Transport> make_plain_transport(StreamSocket socket);

/// Resolves (literals without the resolver) and connects, each address in turn, within the limit.
/// Errors: kUnavailable, and the message names the endpoint and what failed.
net::awaitable<Result<net::ip::tcp::socket>> connect_tcp(
    net::any_io_executor executor, Endpoint to, std::chrono::steady_clock::time_point limit);

/// Connects to a Unix domain socket. Errors: kNotFound: there is none, or no process listens on it;
/// kUnauthorized: the file's owner and mode do not let us; kInvalidArgument: the path is too long;
/// kUnavailable.
Result<net::local::stream_protocol::socket> connect_unix(const net::any_io_executor& executor,
                                                         const std::string& path);
/// Listens on a Unix domain socket that its owner alone may open. What a process that has ended
/// left at the path is removed. Errors: kInvalidArgument: the path is too long for a socket;
/// kConflict: a file that is no socket is there, or another process listens; kIo.
Result<net::local::stream_protocol::acceptor> listen_unix(const net::any_io_executor& executor,
                                                          const std::string& path);

/// Opens, binds and listens. Errors: kConflict: the port is in use (the message says which);
/// kInvalidArgument: no such address here; kUnauthorized: the system refuses; kIo.
Result<net::ip::tcp::acceptor> listen_tcp(net::any_io_executor executor, const std::string& host,
                                          std::uint16_t port);
/// Where it listens, with the port that was chosen for port 0. Error: kIo.
Result<Endpoint> local_endpoint(const net::ip::tcp::acceptor& acceptor, bool tls);

}  // namespace verger::http
