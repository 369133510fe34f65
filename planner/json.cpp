#include "planner/json.h"

#include <fmt/format.h>

namespace verger::planner {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20U) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  out += '"';
  return out;
}

void Json::write(std::string& out) const {
  if (const auto* object = as_object()) {
    out += '{';
    bool first = true;
    for (const auto& [name, value] : *object) {
      if (!first) {
        out += ',';
      }
      first = false;
      out += json_quoted(name);
      out += ':';
      value.write(out);
    }
    out += '}';
  } else if (const auto* array = as_array()) {
    out += '[';
    bool first = true;
    for (const auto& value : *array) {
      if (!first) {
        out += ',';
      }
      first = false;
      value.write(out);
    }
    out += ']';
  } else if (const auto* text = as_string()) {
    out += json_quoted(*text);
  } else if (const auto* number = as_int()) {
    out += fmt::format("{}", *number);
  } else if (const auto* truth = as_bool()) {
    out += *truth ? "true" : "false";
  } else {
    out += "null";
  }
}

std::string Json::text() const {
  std::string out;
  write(out);
  return out;
}

}  // namespace verger::planner
