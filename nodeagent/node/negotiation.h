#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "nodeagent/http/message.h"

namespace verger::node {

/// A form of an answer or a body. kXml stands for two media types, as everywhere in the server:
/// text/xml, then application/xml.
enum class Format : std::uint8_t {
  kJson,
  kText,
  kXml,
  kDescription,  ///< of a stream: what a feed is answered with where any form will do
  kAtomXml,
  kAtomJson,
  kEventXml,
  kEventJson,
  kEventsXml,
  kEventsJson,
  kBytes,
};

struct Negotiated {
  Format format = Format::kJson;
  std::string media_type;  ///< as the answer names it, without charset
};

/// The answer's format by `?format=` or Accept, as the server chooses (node-interface.md §1.1):
/// without either the route's first; of several wishes of one quality the first that can be met; a
/// wish with `*` by the route's first that fits. nullopt: 406.
struct Negotiation {
  std::optional<Negotiated> chosen;
  bool unknown_format_parameter = false;  ///< 500
};
Negotiation negotiate(const http::Request& request, const http::Target& target,
                      std::span<const Format> supported);
/// nullopt: none of the supported (415); names compare with case, a charset must be utf-8.
std::optional<Format> content_format(const http::Request& request,
                                     std::span<const Format> supported);

/// A number as the server reads it: spaces around it and a sign are allowed. nullopt: it is none,
/// or too large.
template <class T>
std::optional<T> parse_number(std::string_view text);
/// "true" or "false" in any case, with spaces around it.
std::optional<bool> parse_boolean(std::string_view text);
/// All values of a query parameter in one, joined by commas, as the server sees a parameter that
/// comes twice; nullopt: it is not there.
std::optional<std::string> joined_parameter(const http::Target& target, std::string_view name);

/// Text for an XML element or attribute.
std::string xml_escaped(std::string_view text);
/// "<?xml ...?><Type ...><Name>value</Name>...</Type>", as the server writes an answer of members.
std::string xml_of(const std::string& type,
                   std::span<const std::pair<std::string, std::string>> members);

http::Response not_acceptable();
http::Response text_response(int status, std::string body, std::string_view methods,
                             bool with_charset);
http::Response empty_response(int status, std::string reason, std::string_view methods);
/// 200 with `Content-Type: <media type>; charset=utf-8`.
http::Response formatted(const Negotiated& format, std::string body, std::string_view methods);

}  // namespace verger::node
