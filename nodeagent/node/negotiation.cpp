#include "nodeagent/node/negotiation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <vector>

#include "engine/base/number_from_text.h"

namespace verger::node {
namespace {

struct MediaType {
  std::string_view name;
  Format format;
};
/// In the order in which a format's names are tried.
constexpr std::array<MediaType, 12> kMediaTypes = {{
    {"application/json", Format::kJson},
    {"text/plain", Format::kText},
    {"text/xml", Format::kXml},
    {"application/xml", Format::kXml},
    {"application/vnd.eventstore.streamdesc+json", Format::kDescription},
    {"application/atom+xml", Format::kAtomXml},
    {"application/vnd.eventstore.atom+json", Format::kAtomJson},
    {"application/vnd.eventstore.event+xml", Format::kEventXml},
    {"application/vnd.eventstore.event+json", Format::kEventJson},
    {"application/vnd.eventstore.events+xml", Format::kEventsXml},
    {"application/vnd.eventstore.events+json", Format::kEventsJson},
    {"application/octet-stream", Format::kBytes},
}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view first_name(Format format) {
  for (const auto& type : kMediaTypes) {
    if (type.format == format) {
      return type.name;
    }
  }
  return "application/json";
}

struct Wish {
  std::string type;
  double quality = 1;
};

std::vector<Wish> wishes(std::string_view accept) {
  std::vector<Wish> found;
  while (!accept.empty()) {
    const auto comma = accept.find(',');
    auto item = accept.substr(0, comma);
    accept = comma == std::string_view::npos ? std::string_view{} : accept.substr(comma + 1);
    Wish wish;
    const auto semicolon = item.find(';');
    wish.type = lower(trim(item.substr(0, semicolon)));
    if (const auto q = item.find("q="); q != std::string_view::npos) {
      const auto text = item.substr(q + 2);
      std::from_chars(text.data(), text.data() + text.size(), wish.quality);
    }
    if (!wish.type.empty()) {
      const auto after = std::ranges::find_if(
          found, [&](const Wish& other) { return other.quality < wish.quality; });
      found.insert(after, std::move(wish));
    }
  }
  return found;
}

bool fits(std::string_view wish, std::string_view name) {
  const auto slash = wish.find('/');
  if (slash == std::string_view::npos) {
    return false;
  }
  const auto type = wish.substr(0, slash);
  const auto subtype = wish.substr(slash + 1);
  const auto own = name.find('/');
  return type == "*" ||
         (type == name.substr(0, own) && (subtype == "*" || subtype == name.substr(own + 1)));
}

std::optional<Negotiated> first_that_fits(std::string_view wish,
                                          std::span<const Format> supported) {
  for (const auto format : supported) {
    for (const auto& type : kMediaTypes) {
      if (type.format == format && fits(wish, type.name)) {
        return Negotiated{format, std::string(type.name)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Negotiation negotiate(const http::Request& request, const http::Target& target,
                      std::span<const Format> supported) {
  if (const auto parameter = target.parameter("format"); parameter && !parameter->empty()) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames = {
        {{"json", "application/json"},
         {"text", "text/plain"},
         {"xml", "text/xml"},
         {"atom", "application/atom+xml"},
         {"atomxj", "application/vnd.eventstore.atom+json"},
         {"atomsvc", "application/atomsvc+xml"},
         {"atomsvcxj", "application/vnd.eventstore.atomsvc+json"}}};
    const auto name = lower(*parameter);
    const auto* const known =
        std::ranges::find(kNames, name, &std::pair<std::string_view, std::string_view>::first);
    if (known == kNames.end()) {
      return {std::nullopt, true};
    }
    return {first_that_fits(known->second, supported)};
  }
  const auto accept = request.headers.get("Accept");
  if (!accept || trim(*accept).empty()) {
    return {Negotiated{supported.front(), std::string(first_name(supported.front()))}};
  }
  for (const auto& wish : wishes(*accept)) {
    if (auto found = first_that_fits(wish.type, supported)) {
      return {std::move(found)};
    }
  }
  return {};
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  text = trim(text);
  const bool plus = text.starts_with('+');
  if (plus) {
    text.remove_prefix(1);
  }
  return plus && text.starts_with('-') ? std::nullopt : number_from_text<T>(text);
}
template std::optional<std::int32_t> parse_number(std::string_view text);
template std::optional<std::int64_t> parse_number(std::string_view text);

std::optional<bool> parse_boolean(std::string_view text) {
  const auto name = lower(trim(text));
  return name == "true"    ? std::optional(true)
         : name == "false" ? std::optional(false)
                           : std::nullopt;
}

std::optional<std::string> joined_parameter(const http::Target& target, std::string_view name) {
  const auto wanted = lower(name);
  std::optional<std::string> joined;
  for (const auto& [key, value] : target.query) {
    if (lower(key) == wanted) {
      joined = joined ? *joined + "," + value : value;
    }
  }
  return joined;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Other control characters cannot stand in XML at all.
        out += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string xml_of(const std::string& type,
                   std::span<const std::pair<std::string, std::string>> members) {
  std::string out = "<?xml version=\"1.0\" encoding=\"utf-8\"?><" + type +
                    " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                    "xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\">";
  for (const auto& [name, value] : members) {
    out += value.empty() ? fmt::format("<{} />", name)
                         : fmt::format("<{0}>{1}</{0}>", name, xml_escaped(value));
  }
  return out + "</" + type + ">";
}

std::optional<Format> content_format(const http::Request& request,
                                     std::span<const Format> supported) {
  const auto header = request.headers.get("Content-Type");
  if (!header) {
    return std::nullopt;
  }
  const auto semicolon = header->find(';');
  const auto name = trim(header->substr(0, semicolon));
  const auto parameters =
      semicolon == std::string_view::npos ? std::string() : lower(header->substr(semicolon));
  if (const auto charset = parameters.find("charset=");
      charset != std::string::npos && !parameters.substr(charset + 8).starts_with("utf-8")) {
    return std::nullopt;
  }
  for (const auto& type : kMediaTypes) {
    if (type.name == name && std::ranges::find(supported, type.format) != supported.end()) {
      return type.format;
    }
  }
  return std::nullopt;
}

http::Response not_acceptable() {
  http::Response response;
  response.status = 406;
  response.reason = "Requested URI is not available in requested format";
  return response;
}

http::Response text_response(int status, std::string body, std::string_view methods,
                             bool with_charset) {
  http::Response response;
  response.status = status;
  response.headers.set("Content-Type", with_charset ? "text/plain; charset=utf-8" : "text/plain");
  response.headers.set("Access-Control-Allow-Methods", std::string(methods));
  response.body = std::move(body);
  return response;
}

http::Response empty_response(int status, std::string reason, std::string_view methods) {
  http::Response response;
  response.status = status;
  response.reason = std::move(reason);
  if (!methods.empty()) {
    response.headers.set("Access-Control-Allow-Methods", std::string(methods));
  }
  return response;
}

http::Response formatted(const Negotiated& format, std::string body, std::string_view methods) {
  http::Response response;
  response.headers.set("Content-Type", format.media_type + "; charset=utf-8");
  response.headers.set("Access-Control-Allow-Methods", std::string(methods));
  response.body = std::move(body);
  return response;
}

}  // namespace verger::node
