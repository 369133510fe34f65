#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/base/bytes.h"

namespace verger::detail {

/// Lanes that are computed together at least: with fewer it would not be faster.
inline constexpr std::size_t kNarrow = 8;
inline constexpr std::size_t kWide = 2 * kNarrow;

/// A word of 32 bits of each lane: of a message, or of a hash's state. What works on them is
/// compiled for several processors, and has to be inlined into functions for each.
using NarrowWords = std::uint32_t __attribute__((vector_size(4 * kNarrow)));
using WideWords = std::uint32_t __attribute__((vector_size(4 * kWide)));

/// Eight words of eight lanes: from a row for each lane to a row for each word.
[[gnu::always_inline]] inline void transpose(NarrowWords* rows) {
  NarrowWords pairs[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  NarrowWords fours[8];
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] =
          __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * j + 1] =
          __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    rows[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// The next eight words of eight lanes.
[[gnu::always_inline]] inline void load_words(const std::byte* const* data, std::size_t offset,
                                              NarrowWords* words) {
  for (std::size_t lane = 0; lane < kNarrow; ++lane) {
    std::memcpy(&words[lane], data[lane] + offset, sizeof(NarrowWords));
  }
  transpose(words);
}

[[gnu::always_inline]] inline void load_words(const std::byte* const* data, std::size_t offset,
                                              WideWords* words) {
  NarrowWords first[kNarrow];
  NarrowWords second[kNarrow];
  load_words(data, offset, first);
  load_words(data + kNarrow, offset, second);
  for (std::size_t word = 0; word < kNarrow; ++word) {
    words[word] = __builtin_shufflevector(first[word], second[word], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                                          10, 11, 12, 13, 14, 15);
  }
}

}  // namespace verger::detail
