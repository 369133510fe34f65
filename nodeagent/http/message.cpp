#include "nodeagent/http/message.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "engine/base/number_from_text.h"
#include "nodeagent/http/base64.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/loopback.h"

namespace verger::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

enum class Plus : std::uint8_t { kLiteral, kSpace };

Result<std::string> percent_decode(std::string_view text, Plus plus) {
  if (text.find_first_of("%+") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Error{Errc::kInvalidArgument,
                     fmt::format("a '%' in \"{}\" is not followed by two hex digits", text)};
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus == Plus::kSpace ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

Result<std::string> percent_decode(std::string_view text) {
  return percent_decode(text, Plus::kLiteral);
}

void Headers::set(std::string_view name, std::string value) {
  std::erase_if(fields_, [&](const auto& field) { return same_name(field.first, name); });
  fields_.emplace_back(name, std::move(value));
}

void Headers::add(std::string_view name, std::string value) {
  fields_.emplace_back(name, std::move(value));
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (same_name(key, name)) {
      return std::string_view(value);
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> Target::parameter(std::string_view name) const {
  for (auto it = query.rbegin(); it != query.rend(); ++it) {
    if (same_name(it->first, name)) {
      return std::string_view(it->second);
    }
  }
  return std::nullopt;
}

Result<Target> parse_target(std::string_view target) {
  if (target.empty() || target.front() != '/') {
    return Error{Errc::kInvalidArgument,
                 fmt::format("request target \"{}\" does not start with '/'", target)};
  }
  target = target.substr(0, target.find('#'));
  const auto question = target.find('?');
  auto path = target.substr(0, question);
  Target out;
  VERGER_TRY(out.path, percent_decode(path, Plus::kLiteral));
  // Split before decoding: an encoded slash belongs to its segment.
  path.remove_prefix(1);
  while (!path.empty() || !out.segments.empty()) {
    const auto slash = path.find('/');
    VERGER_TRY(auto segment, percent_decode(path.substr(0, slash), Plus::kLiteral));
    out.segments.push_back(std::move(segment));
    if (slash == std::string_view::npos) {
      break;
    }
    path.remove_prefix(slash + 1);
  }
  auto query =
      question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
  while (!query.empty()) {
    const auto ampersand = query.find('&');
    const auto pair = query.substr(0, ampersand);
    if (!pair.empty()) {
      const auto equals = pair.find('=');
      VERGER_TRY(auto name, percent_decode(pair.substr(0, equals), Plus::kSpace));
      std::string value;
      if (equals != std::string_view::npos) {
        VERGER_TRY(value, percent_decode(pair.substr(equals + 1), Plus::kSpace));
      }
      out.query.emplace_back(std::move(name), std::move(value));
    }
    if (ampersand == std::string_view::npos) {
      break;
    }
    query.remove_prefix(ampersand + 1);
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text) {
    if (kUnreserved.contains(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string basic_authorization(std::string_view user, std::string_view password) {
  return "Basic " + base64_encode(fmt::format("{}:{}", user, password));
}

std::string_view standard_reason(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string Endpoint::url() const {
  const bool v6 = host.contains(':');
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "",
                     port);
}

Result<Endpoint> parse_endpoint(std::string_view url, std::uint16_t default_port) {
  const auto wrong = [&](std::string_view why) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("\"{}\" is not the URL of a server: {}; write it as "
                             "http://HOST:PORT or https://HOST:PORT",
                             url, why)};
  };
  Endpoint out;
  auto rest = url;
  if (rest.starts_with("https://")) {
    out.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return wrong("it starts neither with http:// nor with https://");
  }
  if (const auto end = rest.find_first_of("/?#"); end != std::string_view::npos) {
    if (rest.substr(end) != "/") {
      return wrong("a path does not belong there");
    }
    rest = rest.substr(0, end);
  }
  if (rest.contains('@')) {
    return wrong("credentials do not belong there");
  }
  std::string_view port;
  bool has_port = false;
  if (rest.starts_with('[')) {
    const auto close = rest.find(']');
    if (close == std::string_view::npos) {
      return wrong("']' is missing");
    }
    out.host = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (!rest.empty() && rest.front() != ':') {
      return wrong("':' expected after ']'");
    }
    has_port = !rest.empty();
    port = has_port ? rest.substr(1) : rest;
  } else {
    const auto colon = rest.find(':');
    out.host = rest.substr(0, colon);
    has_port = colon != std::string_view::npos;
    port = has_port ? rest.substr(colon + 1) : std::string_view{};
  }
  if (out.host.empty()) {
    return wrong("the host is missing");
  }
  if (out.host.find_first_of(" \t\r\n%\\\"<>") != std::string::npos) {
    return wrong("the host holds a character that no name has");
  }
  const std::uint16_t of_scheme = out.tls ? 443 : 80;
  out.port = default_port == 0 ? of_scheme : default_port;
  if (has_port) {
    out.port = number_from_text<std::uint16_t>(port).value_or(0);
    if (out.port == 0) {
      return wrong("the port is not a number from 1 to 65535");
    }
  }
  return out;
}

bool is_loopback(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']') && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  }
  if (same_name(host, "localhost") || host == "::1") {
    return true;
  }
  if (host.starts_with("::ffff:")) {
    host.remove_prefix(7);
  }
  // 127.0.0.0/8, written as four decimal numbers.
  int parts = 0;
  while (true) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(host.data(), host.data() + host.size(), value);
    if (error != std::errc{} || value > 255 || (parts == 0 && value != 127)) {
      return false;
    }
    ++parts;
    host.remove_prefix(static_cast<std::size_t>(end - host.data()));
    if (host.empty()) {
      return parts == 4;
    }
    if (host.front() != '.') {
      return false;
    }
    host.remove_prefix(1);
  }
}

}  // namespace verger::http
