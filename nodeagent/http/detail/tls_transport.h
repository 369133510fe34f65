#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "nodeagent/http/detail/transport.h"
#include "nodeagent/http/tls.h"

struct ssl_ctx_st;

namespace verger::certificates {
struct TlsMaterial;
}  // namespace verger::certificates

namespace verger::http {

struct TlsContext::Impl {
  struct Loaded {
    std::unique_ptr<net::ssl::context> context;
    CertificateInfo certificate;  ///< the own leaf
    std::string reserved_common_name;
    std::string trusted_roots;  ///< where they came from, for messages
  };
  TlsFiles files;
  bool is_server = false;
  ClientCertificate clients = ClientCertificate::kNotRequested;
  mutable std::mutex mutex;
  std::shared_ptr<const Loaded> loaded;

  [[nodiscard]] std::shared_ptr<const Loaded> current() const {
    const std::lock_guard lock(mutex);
    return loaded;
  }
  [[nodiscard]] TlsFiles current_files() const {
    const std::lock_guard lock(mutex);
    return files;
  }
  /// Changes nothing.
  [[nodiscard]] Result<std::shared_ptr<const Loaded>> build(
      const certificates::TlsMaterial& material, const TlsFiles& from) const;
};

/// The handshake of an accepted connection; with `http2`, a client that offers HTTP/2 by ALPN gets
/// it. Error: kUnavailable, with what failed.
net::awaitable<Result<std::shared_ptr<Transport>>> accept_tls(
    StreamSocket socket, std::shared_ptr<TlsContext> tls, std::chrono::steady_clock::duration limit,
    bool http2 = false);
/// The choice, for a context of a server (SSL_CTX_set_alpn_select_cb).
void choose_protocol(ssl_ctx_st* context);
/// What to do about a certificate that no trusted root vouches for; empty: add the root.
using UnknownIssuerAdvice = std::function<std::string(const CertificateInfo&)>;
/// The handshake of a connection to `to`, whose certificate must fit to.host, and `accept` where
/// there is one. Error: kUnavailable.
net::awaitable<Result<std::shared_ptr<Transport>>> connect_tls(
    StreamSocket socket, std::shared_ptr<TlsContext> tls, Endpoint to,
    std::chrono::steady_clock::time_point limit,
    std::function<Result<void>(const CertificateInfo&)> accept = {},
    UnknownIssuerAdvice unknown_issuer_advice = {});
/// The same for HTTP/2, which is offered by ALPN. Error: kUnavailable, also where the server does
/// not choose it.
net::awaitable<Result<std::shared_ptr<Transport>>> connect_tls_http2(
    StreamSocket socket, std::shared_ptr<TlsContext> tls, Endpoint to,
    std::chrono::steady_clock::time_point limit);

}  // namespace verger::http
