#include "nodeagent/node/negotiation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace verger::node {
namespace {

struct MediaType {
  std::string_view name;
  Format format;
};
constexpr std::array<MediaType, 10> kMediaTypes = {{
    {"application/json", Format::kJson},
    {"text/plain", Format::kText},
    {"application/xml", Format::kXml},
    {"text/xml", Format::kXml},
    {"application/vnd.eventstore.atom+json", Format::kAtomJson},
    {"application/vnd.eventstore.event+json", Format::kEventJson},
    {"application/vnd.eventstore.events+json", Format::kEventsJson},
    {"application/vnd.eventstore.streamatom+json", Format::kAtomJson},
    {"application/octet-stream", Format::kBytes},
    {"application/vnd.eventstore.eventatom+json", Format::kAtomJson},
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

bool contains(std::span<const Format> formats, Format format) {
  return std::ranges::find(formats, format) != formats.end();
}

}  // namespace

Negotiation negotiate(const http::Request& request, const http::Target& target,
                      std::span<const Format> supported) {
  if (const auto parameter = target.parameter("format")) {
    const auto name = lower(*parameter);
    const std::optional<Format> format = name == "json"   ? std::optional(Format::kJson)
                                         : name == "text" ? std::optional(Format::kText)
                                         : name == "xml"  ? std::optional(Format::kXml)
                                         : name == "atom" ? std::optional(Format::kAtomJson)
                                                          : std::nullopt;
    if (!format || !contains(supported, *format)) {
      return {std::nullopt, true};
    }
    return {Negotiated{*format,
                       *format == Format::kXml ? "text/xml" : std::string(first_name(*format))}};
  }
  const auto accept = request.headers.get("Accept");
  if (!accept || trim(*accept).empty()) {
    return {Negotiated{supported.front(), std::string(first_name(supported.front()))}};
  }
  for (const auto& wish : wishes(*accept)) {
    if (wish.type == "*/*") {
      return {Negotiated{supported.front(), std::string(first_name(supported.front()))}};
    }
    for (const auto& type : kMediaTypes) {
      if (type.name == wish.type && contains(supported, type.format)) {
        return {Negotiated{type.format, std::string(type.name)}};
      }
    }
  }
  return {};
}

std::optional<Format> content_format(const http::Request& request,
                                     std::span<const Format> supported) {
  const auto header = request.headers.get("Content-Type");
  if (!header) {
    return std::nullopt;
  }
  const auto name = lower(trim(header->substr(0, header->find(';'))));
  for (const auto& type : kMediaTypes) {
    if (type.name == name && contains(supported, type.format)) {
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
