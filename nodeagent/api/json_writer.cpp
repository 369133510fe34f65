#include "nodeagent/api/json_writer.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"
#include "nodeagent/api/json_view.h"

namespace verger::api {
namespace {

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
bool needs_escape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

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
  if (!std::ranges::all_of(text, is_ascii)) {
    text_ += to_text(nlohmann::json(text));  // which knows what UTF-8 is
    return *this;
  }
  text_ += '"';
  for (;;) {
    const auto next = std::ranges::find_if(text, needs_escape);
    text_.append(text.begin(), next);
    if (next == text.end()) {
      break;
    }
    append_escaped(text_, *next);
    text = std::string_view(next + 1, text.end());
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
