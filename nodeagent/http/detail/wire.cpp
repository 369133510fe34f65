#include "nodeagent/http/detail/wire.h"

#include <fmt/format.h>
#include <variant>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace verger::http {
namespace {

namespace beast = boost::beast;
using RequestParser = beast::http::request_parser<beast::http::string_body>;
using ResponseParser = beast::http::response_parser<beast::http::string_body>;
constexpr std::size_t kReadSize = 16UZ * 1024;
constexpr std::size_t kResponseHeaderLimit = 64UZ * 1024;

/// Gives the parser what is in the buffer. False: the message is not whole yet.
template <class Parser>
bool feed(Parser& parser, beast::flat_buffer& buffer, beast::error_code& error) {
  while (!parser.is_done()) {
    if (buffer.size() == 0) {
      return false;
    }
    const auto used = parser.put(buffer.data(), error);
    buffer.consume(used);
    if (error == beast::http::error::need_more) {
      error = {};
      return false;
    }
    if (error) {
      return false;
    }
    if (used == 0 && !parser.is_done()) {
      return false;
    }
  }
  return true;
}

ReadFailure failure_of(const beast::error_code& error) {
  if (error == beast::http::error::header_limit || error == beast::http::error::buffer_overflow) {
    return {.status = 431, .text = "the request's header is too large"};
  }
  if (error == beast::http::error::body_limit) {
    return {.status = 413, .text = "the request's body is too large"};
  }
  if (error == beast::http::error::bad_version) {
    return {.status = 505, .text = "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  return {.status = 400, .text = fmt::format("the request is malformed: {}", error.message())};
}

/// "http://host/path" -> "/path".
std::string origin_form(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.starts_with(scheme)) {
      const auto path = target.find_first_of("/?", scheme.size());
      if (path == std::string_view::npos) {
        return "/";
      }
      return target[path] == '?' ? "/" + std::string(target.substr(path))
                                 : std::string(target.substr(path));
    }
  }
  return std::string(target);
}

/// Everything but the body.
template <class Message>
Request head_of(const Message& message) {
  Request request;
  request.method = message.method_string();
  request.target = origin_form(message.target());
  for (const auto& field : message) {
    request.headers.add(field.name_string(), std::string(field.value()));
  }
  return request;
}

Request take_request(RequestParser& parser) {
  auto message = parser.release();
  auto request = head_of(message);
  request.body = std::move(message.body());
  return request;
}

/// Lowers the limit of a body that has begun to arrive. False: it is larger already.
bool lower_body_limit(RequestParser& parser, std::size_t limit) {
  const auto announced = parser.content_length();
  if ((announced && *announced > limit) || parser.get().body().size() > limit) {
    return false;
  }
  parser.body_limit(limit);  // of a chunked one
  return true;
}

/// What the parser lets pass and a server must not.
std::optional<ReadFailure> check_request(const RequestParser& parser) {
  const auto& message = parser.get();
  if (message.version() >= 11 && message.count(beast::http::field::host) != 1) {
    return ReadFailure{.status = 400, .text = "the request needs exactly one Host header"};
  }
  if (parser.chunked() && message.count(beast::http::field::content_length) != 0) {
    return ReadFailure{.status = 400,
                       .text = "the request has both Content-Length and Transfer-Encoding"};
  }
  const auto target = message.target();
  if (target.empty()) {
    return ReadFailure{.status = 400, .text = "the request has no target"};
  }
  return std::nullopt;
}

Response take_response(ResponseParser& parser) {
  auto message = parser.release();
  Response response;
  response.status = static_cast<int>(message.result_int());
  response.reason = message.reason();
  for (const auto& field : message) {
    response.headers.add(field.name_string(), std::string(field.value()));
  }
  response.body = std::move(message.body());
  return response;
}

void set_limits(RequestParser& parser, std::size_t header_limit, std::size_t body_limit) {
  parser.eager(true);
  parser.header_limit(static_cast<std::uint32_t>(header_limit));
  parser.body_limit(body_limit);
}

void set_limits(ResponseParser& parser, bool head_request, std::size_t body_limit) {
  parser.eager(true);
  parser.header_limit(kResponseHeaderLimit);
  parser.body_limit(body_limit);
  parser.skip(head_request);
}

}  // namespace

std::string header_safe(std::string_view text) {
  std::string out(text);
  std::erase_if(out, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  return out;
}

net::awaitable<std::variant<ReadRequest, ReadFailure>> read_request(
    std::shared_ptr<Transport> transport, beast::flat_buffer& buffer, std::size_t header_limit,
    std::size_t body_limit, BodyLimitOf body_limit_of) {
  RequestParser parser;
  set_limits(parser, header_limit, body_limit);
  bool any_byte = buffer.size() > 0;
  bool continued = false;
  while (true) {
    beast::error_code error;
    const bool whole = feed(parser, buffer, error);
    if (error) {
      co_return failure_of(error);
    }
    if (parser.is_header_done() && !continued) {
      continued = true;
      if (auto wrong = check_request(parser)) {
        co_return std::move(*wrong);
      }
      if (body_limit_of) {
        auto head = head_of(parser.get());
        head.peer = transport->peer();
        if (!lower_body_limit(parser, std::min(body_limit, body_limit_of(head)))) {
          co_return failure_of(beast::http::error::body_limit);
        }
      }
      const auto& message = parser.get();
      if (!whole && message.version() >= 11 &&
          beast::iequals(message[beast::http::field::expect], "100-continue")) {
        constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        if (const auto sent = co_await transport->write(net::buffer(kContinue)); sent.error) {
          co_return ReadFailure{.status = 0, .text = sent.text()};
        }
      }
    }
    if (whole) {
      ReadRequest out;
      out.keep_alive = parser.keep_alive();
      out.http_1_0 = parser.get().version() < 11;
      out.request = take_request(parser);
      out.request.peer = transport->peer();
      co_return out;
    }
    const auto got = co_await transport->read_some(buffer.prepare(kReadSize));
    buffer.commit(got.bytes);
    any_byte = any_byte || got.bytes > 0;
    if (got.timed_out && any_byte) {
      co_return ReadFailure{.status = 408, .text = "the request did not arrive in time"};
    }
    if (got.error) {
      co_return ReadFailure{.status = 0, .text = got.text()};
    }
  }
}

std::string response_head(const Response& response, std::optional<std::size_t> body_size,
                          bool chunked, bool keep_alive) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                  response.reason.empty() ? std::string(standard_reason(response.status))
                                          : header_safe(response.reason));
  for (const auto& [name, value] : response.headers.all()) {
    const auto safe_name = header_safe(name);
    if (beast::iequals(safe_name, "Content-Length") ||
        beast::iequals(safe_name, "Transfer-Encoding") || beast::iequals(safe_name, "Connection")) {
      continue;  // ours to say
    }
    out += fmt::format("{}: {}\r\n", safe_name, header_safe(value));
  }
  if (body_size.has_value()) {
    out += fmt::format("Content-Length: {}\r\n", *body_size);
  } else if (chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  if (!keep_alive) {
    out += "Connection: close\r\n";
  }
  out += "\r\n";
  return out;
}

std::string request_bytes(const Endpoint& to, const Request& request) {
  std::string out =
      fmt::format("{} {} HTTP/1.1\r\n", header_safe(request.method), header_safe(request.target));
  if (!request.headers.get("Host").has_value()) {
    const auto url = to.url();
    out += fmt::format("Host: {}\r\n", url.substr(url.find("://") + 3));
  }
  for (const auto& [name, value] : request.headers.all()) {
    if (!beast::iequals(name, "Content-Length") && !beast::iequals(name, "Transfer-Encoding")) {
      out += fmt::format("{}: {}\r\n", header_safe(name), header_safe(value));
    }
  }
  if (!request.body.empty() ||
      (request.method != "GET" && request.method != "HEAD" && request.method != "DELETE")) {
    out += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  out += "\r\n";
  out += request.body;
  return out;
}

net::awaitable<std::variant<ReadResponse, ResponseFailure>> read_response(
    std::shared_ptr<Transport> transport, bool head_request, std::size_t body_limit) {
  beast::flat_buffer buffer;
  bool any_byte = false;
  std::optional<ResponseParser> parser(std::in_place);
  set_limits(*parser, head_request, body_limit);
  while (true) {
    beast::error_code error;
    const bool whole = feed(*parser, buffer, error);
    if (error) {
      co_return ResponseFailure{
          .any_byte = any_byte,
          .text = error == beast::http::error::body_limit
                      ? fmt::format("the answer is larger than {} bytes", body_limit)
                      : fmt::format("the answer is not HTTP: {}", error.message())};
    }
    if (whole) {
      const auto status = parser->get().result_int();
      if (status >= 100 && status < 200 && status != 101) {
        parser.emplace();  // the real answer follows
        set_limits(*parser, head_request, body_limit);
        continue;
      }
      ReadResponse out;
      out.keep_alive = parser->keep_alive() && buffer.size() == 0;
      out.response = take_response(*parser);
      co_return out;
    }
    const auto got = co_await transport->read_some(buffer.prepare(kReadSize));
    buffer.commit(got.bytes);
    any_byte = any_byte || got.bytes > 0;
    if (got.error == net::error::eof && parser->is_header_done() && parser->need_eof()) {
      beast::error_code ended;
      parser->put_eof(ended);
      if (!ended && parser->is_done()) {
        co_return ReadResponse{.response = take_response(*parser), .keep_alive = false};
      }
    }
    if (got.error) {
      co_return ResponseFailure{
          .any_byte = any_byte,
          .text =
              any_byte ? fmt::format("in the middle of the answer: {}", got.text()) : got.text()};
    }
  }
}

Result<Request> decode_request(std::string_view bytes, std::size_t header_limit,
                               std::size_t body_limit) {
  RequestParser parser;
  set_limits(parser, header_limit, body_limit);
  beast::flat_buffer buffer;
  buffer.commit(net::buffer_copy(buffer.prepare(bytes.size()), net::buffer(bytes)));
  beast::error_code error;
  const bool whole = feed(parser, buffer, error);
  if (error) {
    const auto failure = failure_of(error);
    return Error{
        failure.status == 400 || failure.status == 505 ? Errc::kCorruption : Errc::kNoSpace,
        failure.text};
  }
  if (parser.is_header_done()) {
    if (auto wrong = check_request(parser)) {
      return Error{Errc::kCorruption, std::move(wrong->text)};
    }
  }
  if (!whole) {
    return Error{Errc::kCorruption, "the request is not whole"};
  }
  return take_request(parser);
}

Result<Response> decode_response(std::string_view bytes, bool head_request,
                                 std::size_t body_limit) {
  ResponseParser parser;
  set_limits(parser, head_request, body_limit);
  beast::flat_buffer buffer;
  buffer.commit(net::buffer_copy(buffer.prepare(bytes.size()), net::buffer(bytes)));
  beast::error_code error;
  bool whole = feed(parser, buffer, error);
  if (!error && !whole && parser.is_header_done() && parser.need_eof()) {
    parser.put_eof(error);
    whole = !error && parser.is_done();
  }
  if (error) {
    return Error{error == beast::http::error::body_limit ? Errc::kNoSpace : Errc::kCorruption,
                 fmt::format("the answer is not HTTP: {}", error.message())};
  }
  if (!whole) {
    return Error{Errc::kCorruption, "the answer is not whole"};
  }
  return take_response(parser);
}

}  // namespace verger::http
