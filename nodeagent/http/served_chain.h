#pragma once

#include <chrono>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/client.h"

namespace verger::http {

/// The certificates that a TLS server shows to a new connection now, PEM, leaf first; trusted or
/// not. Error: kUnavailable.
net::awaitable<Result<std::string>> served_chain(net::any_io_executor executor, Endpoint from,
                                                 std::chrono::milliseconds deadline);

/// The root among them whose SHA-256 (lower-case hex) is `fingerprint`, PEM: with that root the
/// server is then verified like any other. Errors: kUnavailable; kRefused: it shows no such root.
net::awaitable<Result<std::string>> served_root(net::any_io_executor executor, Endpoint from,
                                                std::string fingerprint,
                                                std::chrono::milliseconds deadline);

}  // namespace verger::http
