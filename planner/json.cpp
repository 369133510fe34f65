#include "planner/json.h"

#include <fmt/format.h>

#include "engine/base/json_escape.h"

namespace verger::planner {

namespace {

void append_escaped(std::string& out, char c) {
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
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
}

}  // namespace

void append_json_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (;;) {
    const auto plain = plain_length(text);
    out += text.substr(0, plain);
    if (plain == text.size()) {
      break;
    }
    append_escaped(out, text[plain]);
    text.remove_prefix(plain + 1);
  }
  out += '"';
}

void append_json_number(std::string& out, std::int64_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

std::string json_quoted(std::string_view text) {
  std::string out;
  append_json_quoted(out, text);
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
      append_json_quoted(out, name);
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
    append_json_quoted(out, *text);
  } else if (const auto* number = as_int()) {
    append_json_number(out, *number);
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
