#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/client.h"

namespace verger::http {

/// What a client shows and trusts; all PEM. It is read, used for one connection, and dropped.
struct ClientMaterial {
  std::string chain{};  ///< leaf first; empty: no certificate is shown
  std::string key{};
  std::string key_password{};  ///< of an encrypted key
  std::string roots{};         ///< empty: whether the server is to be trusted is not looked at
};

/// What one new connection showed of both sides.
struct Handshake {
  std::string served{};  ///< the certificates that the server shows, PEM, leaf first
  /// Why the roots do not accept what the server shows for the host of the endpoint; empty: they
  /// do, or it was not looked at. The handshake continues in either case.
  std::string not_trusted{};
  /// Whether the server took what we showed: it answered a request. False: it ended the connection
  /// instead, or said in TLS that it refuses. nullopt: neither was seen in time.
  std::optional<bool> accepted{};
  std::string not_accepted{};
  int status = 0;  ///< of its answer to the request; 0: there was none
};

/// Makes a connection of its own, shows the material, sends GET `target`, reads the status, and
/// closes. Errors: kUnavailable: no connection, or no certificate was shown; kInvalidArgument: the
/// material is no PEM, or the key is not that of the certificate.
net::awaitable<Result<Handshake>> shake_hands(net::any_io_executor executor, Endpoint with,
                                              ClientMaterial material, std::string target,
                                              std::chrono::milliseconds deadline);

}  // namespace verger::http
