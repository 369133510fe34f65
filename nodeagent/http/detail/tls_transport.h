#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "nodeagent/http/detail/transport.h"
#include "nodeagent/http/tls.h"

namespace verger::http {

struct TlsContext::Impl {
  struct Loaded {
    std::unique_ptr<net::ssl::context> context;
    std::string fingerprint;
  };
  TlsFiles files;
  bool is_server = false;
  ClientCertificate clients = ClientCertificate::kNotAsked;
  mutable std::mutex mutex;
  std::shared_ptr<const Loaded> loaded;

  [[nodiscard]] std::shared_ptr<const Loaded> current() const {
    const std::lock_guard lock(mutex);
    return loaded;
  }
  [[nodiscard]] Result<std::shared_ptr<const Loaded>> load() const;
};

/// The handshake of an accepted connection. Error: kUnavailable, with what failed.
net::awaitable<Result<std::shared_ptr<Transport>>> accept_tls(
    net::ip::tcp::socket socket, std::shared_ptr<TlsContext> tls,
    std::chrono::steady_clock::duration limit);
/// The handshake of a connection to `to`, whose certificate must fit to.host. Error: kUnavailable.
net::awaitable<Result<std::shared_ptr<Transport>>> connect_tls(
    net::ip::tcp::socket socket, std::shared_ptr<TlsContext> tls, Endpoint to,
    std::chrono::steady_clock::time_point limit);

}  // namespace verger::http
