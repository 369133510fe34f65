#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/bytes.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"

namespace verger::http {

/// A long-lived connection that carries whole frames in order: the replication link. Frames are at
/// most kMaxFrameSize bytes. close() makes every wait on it end with kUnavailable.
class FrameConnection {
 public:
  static constexpr std::size_t kMaxFrameSize = std::size_t{4} * 1024 * 1024;
  virtual ~FrameConnection() = default;
  /// One sender at a time. Errors: kUnavailable.
  virtual net::awaitable<Result<void>> send(Bytes frame) = 0;
  /// One receiver at a time. Errors: kUnavailable (closed), kCorruption (not our protocol).
  virtual net::awaitable<Result<Bytes>> receive() = 0;
  virtual void close() = 0;
};

class FrameTransport {
 public:
  virtual ~FrameTransport() = default;
  virtual net::awaitable<Result<std::shared_ptr<FrameConnection>>> connect(
      Endpoint to, std::chrono::milliseconds deadline) = 0;
};

/// Called for each accepted connection, on the acceptor's executor.
using FrameHandler = std::function<net::awaitable<void>(std::shared_ptr<FrameConnection>)>;

}  // namespace verger::http
