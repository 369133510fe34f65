#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace verger {

// What stands for itself in a JSON string, which is most of most texts: found eight characters at a
// time.

namespace json_escape {

inline constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101U;
inline constexpr std::uint64_t kHighs = 0x8080'8080'8080'8080U;

inline bool needs_escape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

/// Of bytes without the high bit: which of them are below c.
constexpr std::uint64_t below(std::uint64_t bytes, std::uint64_t c) {
  // Subtracting sets the high bit.
  return (bytes - kOnes * c) & ~bytes & kHighs;
}

/// Of eight characters: whether some of them may need it; never false where one does.
inline bool may_need_escape(std::uint64_t eight) {
  return (below(eight, 0x20) | below(eight ^ (kOnes * '"'), 1) |
          below(eight ^ (kOnes * '\\'), 1)) != 0;
}

inline std::uint64_t eight_at(const char* text) {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return word;
}

}  // namespace json_escape

/// How many characters there are before the first that needs an escape.
inline std::size_t plain_length(std::string_view text) {
  std::size_t at = 0;
  while (text.size() - at >= 8 &&
         !json_escape::may_need_escape(json_escape::eight_at(text.data() + at))) {
    at += 8;
  }
  while (at < text.size() && !json_escape::needs_escape(text[at])) {
    ++at;
  }
  return at;
}

/// The same, but also before the first that is no ASCII.
inline std::size_t plain_ascii_length(std::string_view text) {
  std::size_t at = 0;
  while (text.size() - at >= 8) {
    const auto eight = json_escape::eight_at(text.data() + at);
    if ((eight & json_escape::kHighs) != 0 || json_escape::may_need_escape(eight)) {
      break;
    }
    at += 8;
  }
  while (at < text.size() && !json_escape::needs_escape(text[at]) &&
         static_cast<unsigned char>(text[at]) < 0x80) {
    ++at;
  }
  return at;
}

}  // namespace verger
