#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verger::grpc {

enum class Code : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

/// How a call ended.
struct Status {
  Code code = Code::kOk;
  std::string message{};
  /// Trailers besides grpc-status and grpc-message; one with an empty value is not sent.
  std::vector<std::pair<std::string, std::string>> metadata{};
  /// Other than 200: the answer has this status of HTTP alone, and none of gRPC.
  int http_status = 200;
};

/// What the server answers where its handler fails on a request (docs/formats/grpc.md).
inline Status handler_failed() {
  return {.code = Code::kUnknown, .message = "Exception was thrown by handler."};
}

/// A text as grpc-message carries it: percent-encoded where it is not printable ASCII.
std::string encode_message(std::string_view text);
std::string decode_message(std::string_view text);

}  // namespace verger::grpc
