#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/base/bytes.h"

namespace verger {

/// Numbers in as few bytes as they need, seven bits in each, the lowest first: LEB128.
inline constexpr std::size_t kMostBytesOfVarint = 10;

/// Writes to `out`, which has room for kMostBytesOfVarint; how many bytes it has written.
inline std::size_t store_varint(std::byte* out, std::uint64_t value) {
  std::size_t size = 0;
  for (; value >= 0x80; value >>= 7U) {
    out[size++] = static_cast<std::byte>(value | 0x80U);
  }
  out[size++] = static_cast<std::byte>(value);
  return size;
}

inline void append_varint(Bytes& out, std::uint64_t value) {
  std::array<std::byte, kMostBytesOfVarint> bytes;
  append_bytes(out, ByteView(bytes).first(store_varint(bytes.data(), value)));
}

/// Takes the number that `from` begins with; nullopt: there is none, or it has more than 64 bits.
inline std::optional<std::uint64_t> take_varint(ByteView& from) {
  std::uint64_t value = 0;
  for (std::size_t n = 0; n < kMostBytesOfVarint && n < from.size(); ++n) {
    const auto next = std::to_integer<std::uint64_t>(from[n]);
    value |= (next & 0x7FU) << (7 * n);
    if ((next & 0x80U) == 0) {
      from = from.subspan(n + 1);
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace verger
