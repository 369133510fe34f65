#include "engine/base/utf8.h"

#include "engine/base/json_escape.h"

namespace verger {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) {
    return 0;
  }
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) {
    return 0;
  }
  // The second byte's range shuts out overlong forms, surrogates, and what lies above U+10FFFF.
  const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    // Names are nearly always ASCII.
    if (text.size() >= 8 && (json_escape::first_eight(text) & json_escape::kHighs) == 0) {
      text.remove_prefix(8);
      continue;
    }
    const auto length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  const auto add_more = [&](unsigned shift) { add(0x80U | (code_point >> shift & 0x3FU)); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0U | code_point >> 6U);
    add_more(0);
  } else if (code_point < 0x10000) {
    add(0xE0U | code_point >> 12U);
    add_more(6);
    add_more(0);
  } else {
    add(0xF0U | code_point >> 18U);
    add_more(12);
    add_more(6);
    add_more(0);
  }
}

}  // namespace verger
