#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "engine/base/log.h"
#include "nodeagent/http/detail/handler_calls.h"
#include "nodeagent/http/detail/transport.h"
#include "nodeagent/http/server.h"

/// HTTP/2 on a server's port.
namespace verger::http {

enum class Protocol : std::uint8_t {
  kNone,  ///< the connection ended before it showed which
  kHttp1,
  kHttp2,
};

/// By the first bytes, which stay in `buffer`. The transport's deadline is the caller's.
net::awaitable<Protocol> read_protocol(std::shared_ptr<Transport> transport,
                                       boost::beast::flat_buffer& buffer);

/// Serves a connection of HTTP/2 until it ends: requests that the service takes go to its calls,
/// all others to the server's handler. `read`: what has been read of it; `body_limit`: above, the
/// handler's requests get 413.
net::awaitable<void> serve_http2_requests(std::shared_ptr<Transport> transport,
                                          boost::beast::flat_buffer read,
                                          std::shared_ptr<const Http2Service> service,
                                          std::shared_ptr<HandlerCalls> calls,
                                          std::size_t body_limit, Log& log);

}  // namespace verger::http
