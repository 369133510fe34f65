#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nodeagent/http/message.h"

namespace verger::node {

enum class Format : std::uint8_t { kJson, kText, kXml, kAtomJson, kEventJson, kEventsJson, kBytes };

struct Negotiated {
  Format format = Format::kJson;
  std::string media_type;  ///< as the answer names it, without charset
};

/// The answer's format by `?format=` or Accept, as the server chooses (node-interface.md §1.1):
/// without either the route's first; nullopt: 406.
struct Negotiation {
  std::optional<Negotiated> chosen;
  bool unknown_format_parameter = false;  ///< 500
};
Negotiation negotiate(const http::Request& request, const http::Target& target,
                      std::span<const Format> supported);
/// nullopt: none of the supported (415).
std::optional<Format> content_format(const http::Request& request,
                                     std::span<const Format> supported);

http::Response not_acceptable();
http::Response text_response(int status, std::string body, std::string_view methods,
                             bool with_charset);
http::Response empty_response(int status, std::string reason, std::string_view methods);
/// 200 with `Content-Type: <media type>; charset=utf-8`.
http::Response formatted(const Negotiated& format, std::string body, std::string_view methods);

}  // namespace verger::node
