#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/log.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/http2.h"
#include "nodeagent/http/message.h"

namespace verger::http {

class TlsContext;

/// What one peer may cost us. Times are real ones: they guard sockets.
struct ServerLimits {
  std::size_t header_bytes = 16 * 1024;      ///< above: 431; NOLINT(bugprone-implicit-*)
  std::size_t body_bytes = 8 * 1024 * 1024;  ///< above: 413; NOLINT(bugprone-implicit-*)
  std::size_t connections = 512;             ///< above: 503 and closed
  /// The same for clients that are not identified yet (ServerOptions::knows).
  std::size_t unknown_body_bytes = 64 * 1024;  ///< NOLINT(bugprone-implicit-*)
  std::size_t unknown_connections = 64;        ///< above: one that waits for a request is closed
  std::chrono::milliseconds idle{75'000};      ///< between requests; then closed
  std::chrono::milliseconds read{30'000};      ///< for one whole request; then 408
  std::chrono::milliseconds write{30'000};     ///< for one answer, or one piece of a stream
  std::chrono::milliseconds tls_handshake{10'000};
  /// 0: a handler takes as long as it takes. Else the client gets `handler_late` after this time,
  /// while the handler continues to its end (node-interface.md, 1.1).
  std::chrono::milliseconds handler{0};
  /// What a peer sends beyond an answer that ends the connection is read and dropped for this long,
  /// so that it gets to see the answer.
  std::chrono::milliseconds linger{2'000};
};

/// HTTP/2 on the same port: chosen by ALPN under TLS, by prior knowledge without.
struct Http2Service {
  Http2Options options{};
  /// Whether a request is for `calls`; all others are the handler's, as those of HTTP/1.1 are.
  std::function<bool(const Request& head)> takes{};
  Http2Handler calls{};
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system chooses
  ServerLimits limits{};
  /// Time that a request may take beyond ServerLimits::handler; empty: none.
  std::chrono::milliseconds (*more_time)(const Request&) = nullptr;
  /// Null: plain HTTP.
  std::shared_ptr<TlsContext> tls{};
  /// Null: HTTP/1 alone.
  std::shared_ptr<const Http2Service> http2{};
  /// Whether a request's head identifies a known client: from then on its connection is one of
  /// the many, with the usual limits. Empty: every client is known.
  std::function<bool(const Request& head)> knows{};
  /// The answer after ServerLimits::handler.
  Response handler_late{.status = 408, .reason = "Server was unable to handle request in time"};
};

/// An HTTP/1.1 server (1.0 too, and HTTP/2 where it is configured): keep-alive, pipelined requests
/// one after the other, chunked requests, streamed answers. A request it cannot read gets 400; a
/// handler's exception 500.
///
/// Everything, handlers too, runs on `executor`: a strand, or the executor of a context that a
/// single thread runs. The members are called there, or before it runs.
class Server {
 public:
  Server(net::any_io_executor executor, ServerOptions options, Handler handler, Log& log);
  /// Closes what is open; the way to end in order is stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens and starts to accept. The result carries the port that was chosen.
  /// Errors: kConflict: the port is in use (the message says which); kInvalidArgument: not an
  /// address of this machine; kUnauthorized, kIo.
  Result<Endpoint> listen();
  /// The same at a Unix domain socket of mode 0600, which goes with the server; host, port and TLS
  /// of the options do not count. Errors: kConflict: another process listens there, or another file
  /// is there; kInvalidArgument: the path is too long for a socket; kIo.
  Result<void> listen_at(const std::string& path);
  /// Stops accepting, ends idle connections and streams at once, lets requests under way finish for
  /// `grace`, then cancels them, and returns when no coroutine of this server is left. Handlers
  /// must therefore come to an end when cancelled.
  net::awaitable<void> stop(std::chrono::milliseconds grace);
  [[nodiscard]] std::size_t connection_count() const;
  /// Those in the middle of a request, or of its answer.
  [[nodiscard]] std::size_t busy_connection_count() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::http
