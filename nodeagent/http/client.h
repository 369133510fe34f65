#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "nodeagent/http/message.h"

namespace verger::http {

/// Where a server listens.
struct Endpoint {
  bool tls = false;
  std::string host;
  std::uint16_t port = 0;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
  [[nodiscard]] std::string url() const;
};

/// Ports of those that are named without one.
inline constexpr std::uint16_t kNodePort = 2113;
inline constexpr std::uint16_t kAgentPort = 2114;
inline constexpr std::uint16_t kControllerPort = 2115;

/// "http://127.0.0.1:2113"; without a port it is `default_port`, with 0 that of the scheme (80,
/// 443); a path other than "/" is refused.
Result<Endpoint> parse_endpoint(std::string_view url, std::uint16_t default_port = kNodePort);

/// Sends requests. The simulation has its own.
///
/// Errors: kUnavailable: certainly not sent (no connection, name, TLS). kUnknownOutcome: sent, at
/// least in part, and no whole answer arrived before the deadline: it may have been carried out.
/// Whether a status is good news is the caller's to say.
class Client {
 public:
  virtual ~Client() = default;
  virtual net::awaitable<Result<Response>> send(Endpoint to, Request request,
                                                std::chrono::milliseconds deadline) = 0;
};

}  // namespace verger::http
