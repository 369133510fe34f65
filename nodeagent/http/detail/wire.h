#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "nodeagent/http/detail/transport.h"
#include "nodeagent/http/message.h"

/// HTTP/1.1 messages on a Transport. Beast's parsers read; we write.
namespace verger::http {

/// Removes what would end a header line early: a value that came from outside must not add one.
std::string header_safe(std::string_view text);

/// Why a request could not be read.
struct ReadFailure {
  /// What to answer; 0: no client is left to read an answer.
  int status = 0;
  std::string text;
};
struct ReadRequest {
  Request request;
  bool keep_alive = false;
  bool http_1_0 = false;
};
/// How large the body of a request may be, by its head: method, target, headers and peer.
using BodyLimitOf = std::function<std::size_t(const Request& head)>;
/// Reads one request; bytes of the next one stay in `buffer`. Sends 100 Continue where it is waited
/// for. The transport's deadline is the caller's. `body_limit_of` lowers `body_limit` once the head
/// is there, before more of the body is read; empty: it does not.
net::awaitable<std::variant<ReadRequest, ReadFailure>> read_request(
    std::shared_ptr<Transport> transport, boost::beast::flat_buffer& buffer,
    std::size_t header_limit, std::size_t body_limit, BodyLimitOf body_limit_of = {});

/// Whether a response of this status never has a body.
constexpr bool has_no_body(int status) { return status == 204 || status == 304 || status < 200; }

/// Status line and headers, with the blank line. `body_size`: for Content-Length; nullopt: as
/// `chunked` says.
std::string response_head(const Response& response, std::optional<std::size_t> body_size,
                          bool chunked, bool keep_alive);
/// Request line, headers and body. Adds Host and Content-Length.
std::string request_bytes(const Endpoint& to, const Request& request);

struct ReadResponse {
  Response response;
  bool keep_alive = false;
};
struct ResponseFailure {
  bool any_byte = false;  ///< something of an answer had arrived
  std::string text;
};
net::awaitable<std::variant<ReadResponse, ResponseFailure>> read_response(
    std::shared_ptr<Transport> transport, bool head_request, std::size_t body_limit);

/// The pure cores of the two, for tests and fuzzing: one whole message in `bytes`. Error:
/// kCorruption (malformed or not whole), kNoSpace (over a limit).
Result<Request> decode_request(std::string_view bytes, std::size_t header_limit,
                               std::size_t body_limit);
Result<Response> decode_response(std::string_view bytes, bool head_request, std::size_t body_limit);

}  // namespace verger::http
