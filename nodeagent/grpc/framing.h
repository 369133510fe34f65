#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "nodeagent/grpc/status.h"

/// Length-prefixed messages: one byte (1: compressed), four bytes of length, big endian.
namespace verger::grpc {

std::string framed(std::string_view message);

enum class Encoding : std::uint8_t { kNone, kGzip, kDeflate };

/// Takes messages out of the bytes of a call, as they come.
class MessageReader {
 public:
  MessageReader(std::size_t most_bytes, Encoding encoding)
      : most_bytes_(most_bytes), encoding_(encoding) {}
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// The next message; nullopt: more bytes are needed. Errors: too large, or wrongly compressed.
  std::expected<std::optional<std::string>, Status> next();
  /// Bytes that make no whole message.
  [[nodiscard]] bool has_rest() const { return begin_ < bytes_.size(); }

 private:
  std::size_t most_bytes_;
  Encoding encoding_;
  std::string bytes_;
  std::size_t begin_ = 0;
};

/// The text of a gzip or zlib stream; nullopt: not one, or longer than `most_bytes`.
std::optional<std::string> inflated(std::string_view bytes, std::size_t most_bytes);

/// Of a header "grpc-timeout", for example "500m"; nullopt: not one.
std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text);

}  // namespace verger::grpc
