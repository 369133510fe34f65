#pragma once

#include <cstdint>
#include <memory>

namespace verger::test {

/// A slow line to a server on this machine: a port of 127.0.0.1 from which bytes pass to the
/// server's and back, no more than so many in a second each way, all connections together. A thread
/// of its own.
class SlowLine {
 public:
  SlowLine(std::uint16_t server_port, std::uint64_t bytes_per_second);
  ~SlowLine();
  SlowLine(const SlowLine&) = delete;
  SlowLine& operator=(const SlowLine&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// Bytes that came from the server.
  [[nodiscard]] std::uint64_t received() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verger::test
