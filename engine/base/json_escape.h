#pragma once

#include <bit>
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

/// Of eight characters: the high bit of the first that needs an escape; behind it, any.
inline std::uint64_t first_escape(std::uint64_t eight) {
  return below(eight, 0x20) | below(eight ^ (kOnes * '"'), 1) | below(eight ^ (kOnes * '\\'), 1);
}

/// Which of eight characters the lowest high bit is of, where the first is in the lowest byte.
inline std::size_t place_of(std::uint64_t high_bit) {
  return static_cast<std::size_t>(std::countr_zero(high_bit)) / 8;
}

/// The first eight characters of at least as many, the first in the lowest byte.
inline std::uint64_t first_eight(std::string_view text) {
  std::uint64_t word = 0;
  std::memcpy(&word, text.data(), sizeof word);
  if constexpr (std::endian::native == std::endian::big) {
    word = __builtin_bswap64(word);
  }
  return word;
}

}  // namespace json_escape

/// How many characters there are before the first that needs an escape.
inline std::size_t plain_length(std::string_view text) {
  std::size_t at = 0;
  for (; text.size() - at >= 8; at += 8) {
    if (const auto found = json_escape::first_escape(json_escape::first_eight(text.substr(at)))) {
      return at + json_escape::place_of(found);
    }
  }
  while (at < text.size() && !json_escape::needs_escape(text[at])) {
    ++at;
  }
  return at;
}

/// The same, but also before the first that is no ASCII.
inline std::size_t plain_ascii_length(std::string_view text) {
  std::size_t at = 0;
  for (; text.size() - at >= 8; at += 8) {
    const auto eight = json_escape::first_eight(text.substr(at));
    if (const auto found = (eight & json_escape::kHighs) | json_escape::first_escape(eight)) {
      return at + json_escape::place_of(found);
    }
  }
  while (at < text.size() && !json_escape::needs_escape(text[at]) &&
         static_cast<unsigned char>(text[at]) < 0x80) {
    ++at;
  }
  return at;
}

}  // namespace verger
