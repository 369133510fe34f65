#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/log.h"
#include "engine/base/result.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/timers.h"

/// HTTP/2 (RFC 9113) on the client's side, as coroutines; nghttp2 frames and compresses.
namespace verger::http {

class TlsContext;

struct Http2Head {
  int status = 0;
  Headers headers{};  ///< names in lower case
  bool end = false;   ///< neither body nor trailers follow
};

/// One request and its answer, on the executor of its connection. Request and answer are
/// independent: either may go on after the other has ended.
///
/// Errors of all waits: kTimeout: the deadline has passed, and the request was reset; kCancelled:
/// cancel() was called; kUnavailable: it certainly did not begin there; kUnknownOutcome: the
/// connection ended, or the other side reset the request, before its answer was whole.
class Http2Request {
 public:
  Http2Request() = default;
  virtual ~Http2Request() = default;
  Http2Request(const Http2Request&) = delete;
  Http2Request& operator=(const Http2Request&) = delete;

  /// A piece of the body; returns once there is room for more.
  virtual net::awaitable<Result<void>> write(std::string bytes) = 0;
  /// The body is whole.
  virtual void end() = 0;
  /// Waits for the head of the answer.
  virtual net::awaitable<Result<Http2Head>> head() = 0;
  /// The next piece of the answer's body; empty at its end.
  virtual net::awaitable<Result<std::string>> read() = 0;
  /// After the end of the body.
  [[nodiscard]] virtual const Headers& trailers() const = 0;
  /// The one limit for all waits from now on.
  virtual void expires_after(std::chrono::milliseconds limit) = 0;
  virtual void never_expires() = 0;
  /// Resets it where it has not ended.
  virtual void cancel() = 0;
};

struct Http2ClientOptions {
  std::chrono::milliseconds connect{10'000};  ///< TLS included
  /// A connection on which nothing arrives for this long while requests are open is pinged ...
  std::chrono::milliseconds keep_alive_interval{10'000};
  /// ... and ended when the answer takes longer than this.
  std::chrono::milliseconds keep_alive_timeout{10'000};
  std::size_t header_bytes = 32'768;  ///< of one answer; NOLINT(bugprone-implicit-*)
};

/// One connection. Everything on `executor`: a strand, or the executor of a context that a single
/// thread runs. `timers` and `log` outlive the executor's work. Destroying it ends the connection
/// and all its requests.
class Http2Client {
 public:
  /// TLS by `tls` with HTTP/2 chosen by ALPN where to.tls is set, else by prior knowledge. Error:
  /// kUnavailable.
  static net::awaitable<Result<std::unique_ptr<Http2Client>>> connect(
      net::any_io_executor executor, Endpoint to, std::shared_ptr<TlsContext> tls,
      Http2ClientOptions options, Timers& timers, Log& log);
  /// Errors: kNotFound: no process listens there; kUnauthorized: its mode does not let us;
  /// kInvalidArgument: the path is too long for a socket; kUnavailable.
  static Result<std::unique_ptr<Http2Client>> connect_local(const net::any_io_executor& executor,
                                                            const std::string& path,
                                                            Http2ClientOptions options,
                                                            Timers& timers, Log& log);
  ~Http2Client();
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  /// Method, target and headers count; the body is written to what is returned.
  std::shared_ptr<Http2Request> start(const Request& request);
  /// False once it has ended, or the other side takes no more requests on it.
  [[nodiscard]] bool open() const;

  class Impl;

 private:
  explicit Http2Client(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::http
