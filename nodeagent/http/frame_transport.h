#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/bytes.h"
#include "engine/base/log.h"
#include "nodeagent/http/frames.h"

namespace verger::http {

class TlsContext;

/// The frames' own protocol, little-endian:
///   hello, both ways, at once after connecting: "VGRFRAME", u16 version, u16 status (0 = welcome)
///   frame: u32 size, then `size` bytes; size <= FrameConnection::kMaxFrameSize
/// The acceptor answers a hello it does not take with one of its own and status 1, and anything
/// that is no hello with a line of text; then it closes.
struct FrameHello {
  static constexpr std::size_t kSize = 12;
  static constexpr std::uint16_t kVersion = 1;
  std::uint16_t version = kVersion;
  std::uint16_t status = 0;
};
Bytes encode_hello(const FrameHello& hello);
/// Errors: kUnsupported: not our protocol; the message quotes what it looks like.
Result<FrameHello> decode_hello(ByteView bytes);

/// Connects over TCP, and TLS where Endpoint::tls says so (inside it the protocol is the same).
/// Connections live on `executor` (a strand or a single thread's), and connect(), send(), receive()
/// and close() are called there.
///
/// Errors of connect: kUnavailable: no process listens, or no hello in time; kUnsupported:
/// another protocol, or another version of ours.
class TcpFrameTransport final : public FrameTransport {
 public:
  /// `tls`: for endpoints with TLS; null: they are unavailable.
  explicit TcpFrameTransport(net::any_io_executor executor,
                             std::shared_ptr<TlsContext> tls = nullptr);
  net::awaitable<Result<std::shared_ptr<FrameConnection>>> connect(
      Endpoint to, std::chrono::milliseconds deadline) override;

 private:
  net::any_io_executor executor_;
  std::shared_ptr<TlsContext> tls_;
};

struct FrameAcceptorOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system chooses
  std::size_t connections = 64;
  std::chrono::milliseconds hello{5'000};
  /// Null: plain TCP.
  std::shared_ptr<TlsContext> tls{};
};

/// Takes connections and hands each, after its hello, to `handler`. The connection is closed when
/// the handler returns. Runs on `executor` like Server.
class FrameAcceptor {
 public:
  FrameAcceptor(net::any_io_executor executor, FrameAcceptorOptions options, FrameHandler handler,
                Log& log);
  ~FrameAcceptor();
  FrameAcceptor(const FrameAcceptor&) = delete;
  FrameAcceptor& operator=(const FrameAcceptor&) = delete;

  /// Errors as Server::listen.
  Result<Endpoint> listen();
  /// Stops accepting, closes all connections (their waits end with kUnavailable), gives the
  /// handlers `grace`, cancels those left, waits for them.
  net::awaitable<void> stop(std::chrono::milliseconds grace);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::http
