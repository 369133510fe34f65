#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/clock.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/http/client.h"

namespace verger::http {

class TlsContext;

/// A number of unused connections that may stay for longer than others, over all clients that share
/// it. Safe from any thread.
class KeptConnections : public std::enable_shared_from_this<KeptConnections> {
 public:
  KeptConnections(std::size_t places, std::chrono::milliseconds idle_lifetime)
      : free_(static_cast<std::ptrdiff_t>(places)), idle_lifetime_(idle_lifetime) {}
  /// One place until what is returned goes away; nullptr: none is free.
  std::shared_ptr<void> take();
  /// Of a connection that has a place.
  [[nodiscard]] std::chrono::milliseconds idle_lifetime() const { return idle_lifetime_; }

 private:
  std::atomic<std::ptrdiff_t> free_;
  std::chrono::milliseconds idle_lifetime_;
};

struct BeastClientOptions {
  /// Age at which a connection carries no new request. The server's nodes use ten minutes; until
  /// then a peer may see the certificate of the day it was opened.
  std::chrono::milliseconds connection_lifetime{std::chrono::minutes(10)};
  /// An unused connection is not taken again after this time.
  std::chrono::milliseconds idle_lifetime{30'000};
  /// Where it has a place for the connection, its own time counts instead.
  std::shared_ptr<KeptConnections> kept{};
  std::size_t idle_per_endpoint = 4;
  std::size_t response_bytes = 64 * 1024 * 1024;  // NOLINT(bugprone-implicit-*): it fits
  /// For https endpoints; null: they are unavailable.
  std::shared_ptr<TlsContext> tls{};
  /// What to do where `tls` is missing, for the error.
  std::string roots_advice{};
  /// Checks the certificate of each new connection, after TLS has accepted it: whether it is
  /// that of the one who is meant. An error ends the connection before anything is sent, and the
  /// request with kUnavailable.
  std::function<Result<void>(const certificates::CertificateInfo&)> accept_peer{};
  /// Asked about a certificate that no trusted root vouches for: what to do about it, for the
  /// error. Empty: that the root is to be added. Nothing of the certificate is verified.
  std::function<std::string(const certificates::CertificateInfo&)> unknown_issuer_advice{};
  /// Plain HTTP is spoken with this machine only: nothing, and no password, crosses a network
  /// unprotected. The programs set it.
  bool plain_to_loopback_only = false;
};

/// The Client of production: HTTP/1.1 with pooled connections.
///
/// A request goes out once. It is sent a second time, on a new connection, only where the first
/// cannot have been carried out: a pooled connection took none of its bytes, or the method is GET
/// or HEAD and no byte of an answer came. A pooled connection is looked at first, and not used when
/// its peer has closed it. Adds Host, Content-Length (0 too: node-interface.md, 1.1), and Accept
/// by add_default_accept().
///
/// Connections live on `executor` (a strand is made of it); send() may be awaited on any executor.
class BeastClient final : public Client {
 public:
  explicit BeastClient(net::any_io_executor executor, BeastClientOptions options = {},
                       Clock& clock = system_clock());
  /// Closes the pooled connections. No send() may be under way.
  ~BeastClient() override;
  BeastClient(const BeastClient&) = delete;
  BeastClient& operator=(const BeastClient&) = delete;

  net::awaitable<Result<Response>> send(Endpoint to, Request request,
                                        std::chrono::milliseconds deadline) override;
  /// Closes all pooled connections: the next requests make new ones.
  void drop_connections();
  /// Closes those that will not be taken again, since they are too old or were not used for too
  /// long. Else each stays until the next request to its endpoint.
  void close_unused();
  struct Counts {
    std::size_t connections_made = 0;
    std::size_t requests_sent = 0;
    std::size_t repeated = 0;  ///< sent again after a stale connection
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// "Accept: application/json" where the request has no Accept and does not go to /metrics, which
/// refuses it.
void add_default_accept(Request& request);

}  // namespace verger::http
