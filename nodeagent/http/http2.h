#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "engine/base/log.h"
#include "engine/base/result.h"
#include "nodeagent/http/byte_stream.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/timers.h"

/// HTTP/2 (RFC 9113) on the server's side, as coroutines; nghttp2 frames and compresses.
namespace verger::http {

/// What a client that speaks HTTP/2 sends first.
inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One request and its answer, on the executor of its connection. An answer is: send_head(), then
/// write() any number of times, then end(). After the client has reset the request or the
/// connection is gone, nothing is sent.
class Http2Exchange {
 public:
  Http2Exchange() = default;
  virtual ~Http2Exchange() = default;
  Http2Exchange(const Http2Exchange&) = delete;
  Http2Exchange& operator=(const Http2Exchange&) = delete;

  /// Method, target, headers (names in lower case; `host` is the authority) and peer, without body.
  [[nodiscard]] virtual const Request& head() const = 0;
  /// The next piece of the body; empty at its end. Error kCancelled: see cancelled().
  virtual net::awaitable<Result<std::string>> read() = 0;
  /// `end`: there is neither body nor trailer.
  virtual void send_head(int status, const Headers& headers, bool end) = 0;
  /// Returns once there is room for more. Error kCancelled.
  virtual net::awaitable<Result<void>> write(std::string bytes) = 0;
  virtual void end(const Headers& trailers) = 0;
  /// The client has reset it, or the connection is gone.
  [[nodiscard]] virtual bool cancelled() const = 0;
  /// Ends waiting in read() and write() with kCancelled; what was written is still sent.
  virtual void cancel() = 0;
  /// Called once it is cancelled, by cancel() too.
  std::function<void()> on_cancel{};
};
using Http2Handler = std::function<net::awaitable<void>(std::shared_ptr<Http2Exchange>)>;

struct Http2Options {
  // As the server's (docs/formats/grpc.md).
  std::uint32_t streams = 100;  ///< requests of one connection at a time
  std::uint32_t stream_window = 786'432;
  std::int32_t connection_window = 1'048'576;
  std::uint32_t header_bytes = 32'768;
  /// A connection on which nothing arrives for this long is pinged ...
  std::chrono::milliseconds keep_alive_interval{10'000};
  /// ... and closed when the answer takes longer than this.
  std::chrono::milliseconds keep_alive_timeout{10'000};
};

/// Serves one connection until it ends, and its last handler has. A handler's exception resets its
/// request.
net::awaitable<void> serve_http2(std::shared_ptr<ByteStream> stream, Http2Handler handler,
                                 Http2Options options, Timers& timers, Log& log);

}  // namespace verger::http
