#include "nodeagent/api/json_writer.h"

#include <iterator>

#include <nlohmann/json.hpp>

#include "engine/base/json_escape.h"
#include "nodeagent/api/json_text.h"
#include "nodeagent/api/json_view.h"

namespace verger::api {
namespace {

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt";  // a character and its letter
  for (std::size_t i = 0; i < kShort.size(); i += 2) {
    if (kShort[i] == c) {
      out += '\\';
      out += kShort[i + 1];
      return;
    }
  }
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
}

}  // namespace

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  const auto begin = text_.size();
  text_ += '"';
  for (auto rest = text;;) {
    const auto plain = plain_ascii_length(rest);
    text_ += rest.substr(0, plain);
    if (plain == rest.size()) {
      break;
    }
    if (static_cast<unsigned char>(rest[plain]) >= 0x80) {
      text_.resize(begin);
      text_ += to_text(nlohmann::json(text));  // which knows what UTF-8 is
      return *this;
    }
    append_escaped(text_, rest[plain]);
    rest.remove_prefix(plain + 1);
  }
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::embedded(std::string_view json) {
  const auto document = JsonDocument::parse(json, "embedded JSON");
  if (!document) {
    return value(json);
  }
  separate();
  text_ += document->root().text();
  return *this;
}

JsonWriter& JsonWriter::members_of(std::string_view object) {
  const auto document = JsonDocument::parse(object, "members");
  if (document && document->root().is_object() && !document->root().is_empty()) {
    const auto text = document->root().text();
    separate();
    text_ += text.substr(1, text.size() - 2);
  }
  return *this;
}

}  // namespace verger::api
