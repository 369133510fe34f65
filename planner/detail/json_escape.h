#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace verger::planner::detail {

inline constexpr auto kNeedsEscape = [] {
  std::array<bool, 256> out{};
  std::fill_n(out.begin(), 0x20, true);
  out['"'] = true;
  out['\\'] = true;
  return out;
}();
inline bool needs_escape(char c) { return kNeedsEscape[static_cast<unsigned char>(c)]; }

/// Of eight characters at once: whether some of them may need it; never false where one does.
inline bool may_need_escape(const char* eight) {
  constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101U;
  constexpr std::uint64_t kHighs = 0x8080'8080'8080'8080U;
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof word);
  // Below c, for bytes without the high bit: subtracting sets the high bit.
  const auto below = [](std::uint64_t bytes, std::uint64_t c) {
    return (bytes - kOnes * c) & ~bytes & kHighs;
  };
  return (below(word, 0x20) | below(word ^ (kOnes * '"'), 1) | below(word ^ (kOnes * '\\'), 1)) !=
         0;
}

/// How many characters there are before the first that needs an escape.
inline std::size_t plain_length(std::string_view text) {
  std::size_t at = 0;
  while (text.size() - at >= 8 && !may_need_escape(text.data() + at)) {
    at += 8;
  }
  while (at < text.size() && !needs_escape(text[at])) {
    ++at;
  }
  return at;
}

}  // namespace verger::planner::detail
