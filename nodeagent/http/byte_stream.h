#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>

#include "nodeagent/http/message.h"

namespace verger::http {

/// A connected stream of bytes, whatever carries it. One reader and one writer at a time, on one
/// executor.
class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  /// How many bytes arrived; 0: the stream has ended.
  virtual net::awaitable<std::size_t> read_some(net::mutable_buffer into) = 0;
  /// All of it; false: the stream has ended.
  virtual net::awaitable<bool> write(std::string_view bytes) = 0;
  /// Ends both directions, also for those who wait.
  virtual void close() = 0;
  [[nodiscard]] virtual const Peer& peer() const = 0;
};

}  // namespace verger::http
