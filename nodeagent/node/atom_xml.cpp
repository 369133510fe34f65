#include "nodeagent/node/atom_xml.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/negotiation.h"

namespace verger::node::atom {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kDeclaration = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
constexpr std::string_view kNamespace = "http://www.w3.org/2005/Atom";

std::string text_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Member names become element names; what cannot stand in one is written as the server's JSON
/// library does: _x0024_ for '$'.
std::string element_name(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool letter = (c | 0x20U) >= 'a' && (c | 0x20U) <= 'z';
    const bool digit = c >= '0' && c <= '9';
    const bool good = letter || c == '_' || c >= 0x80 || (i > 0 && (digit || c == '-' || c == '.'));
    out += good ? std::string(1, name[i]) : fmt::format("_x{:04X}_", c);
  }
  return out.empty() ? "_" : out;
}

void append_value(std::string& out, const std::string& element, std::string_view attributes,
                  const ordered_json& value) {
  if (value.is_array()) {
    for (const auto& each : value) {
      append_value(out, element, attributes, each);
    }
    return;
  }
  if (value.is_null()) {
    out += fmt::format("<{}{} />", element, attributes);
    return;
  }
  out += fmt::format("<{}{}>", element, attributes);
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      append_value(out, element_name(name), "", inner);
    }
  } else {
    out += xml_escaped(text_of(value));
  }
  out += fmt::format("</{}>", element);
}

class Writer {
 public:
  /// "atom:" for an entry of its own, empty inside a feed.
  explicit Writer(std::string_view prefix) : prefix_(prefix) {}

  void simple(std::string_view name, const ordered_json& value) {
    out += fmt::format("<{0}{1}>{2}</{0}{1}>", prefix_, name, xml_escaped(text_of(value)));
  }
  void author(const ordered_json& value) {
    out += fmt::format("<{}author>", prefix_);
    simple("name", value["name"]);
    out += fmt::format("</{}author>", prefix_);
  }
  void links(const ordered_json& values) {
    for (const auto& link : values) {
      out += fmt::format("<{}link href=\"{}\" rel=\"{}\"", prefix_,
                         xml_escaped(text_of(link["uri"])), xml_escaped(text_of(link["relation"])));
      if (link["type"].is_string()) {
        out += fmt::format(" type=\"{}\"", xml_escaped(text_of(link["type"])));
      }
      out += " />";
    }
  }
  void entry(const ordered_json& value, std::string_view attributes) {
    out += fmt::format("<{}entry{}>", prefix_, attributes);
    simple("title", value["title"]);
    simple("id", value["id"]);
    simple("updated", value["updated"]);
    author(value["author"]);
    simple("summary", value["summary"]);
    links(value["links"]);
    if (const auto& content = value["content"]; content.is_object()) {
      out += fmt::format("<{}content type=\"application/xml\">", prefix_);
      for (const auto& [name, inner] : content.items()) {
        append_value(out, element_name(name), prefix_.empty() ? " xmlns=\"\"" : "", inner);
      }
      out += fmt::format("</{}content>", prefix_);
    }
    out += fmt::format("</{}entry>", prefix_);
  }

  std::string out{kDeclaration};

 private:
  std::string prefix_;
};

}  // namespace

std::string feed_xml(const ordered_json& feed) {
  Writer writer("");
  writer.out += fmt::format("<feed xmlns=\"{}\">", kNamespace);
  writer.simple("title", feed["title"]);
  writer.simple("id", feed["id"]);
  writer.simple("updated", feed["updated"]);
  writer.author(feed["author"]);
  writer.links(feed["links"]);
  for (const auto& entry : feed["entries"]) {
    writer.entry(entry, "");
  }
  return writer.out + "</feed>";
}

std::string entry_xml(const ordered_json& entry) {
  Writer writer("atom:");
  writer.entry(entry, fmt::format(" xmlns:atom=\"{}\"", kNamespace));
  return writer.out;
}

std::string value_xml(std::string_view root, const ordered_json& value) {
  std::string out;
  append_value(out, std::string(root), "", value);
  return out;
}

}  // namespace verger::node::atom
