#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"

namespace verger::log {

/// Bytes from pairs of hexadecimal digits; blanks are skipped.
inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  std::string digits;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) {
      digits += c;
    }
    if (digits.size() == 2) {
      bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
      digits.clear();
    }
  }
  return bytes;
}

}  // namespace verger::log
