#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace verger {

using ByteView = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;
using Bytes = std::vector<std::byte>;

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

/// The little-endian integer at the start of `bytes`; the caller has checked that it is there.
template <std::integral T>
T load_le(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <std::integral T>
void store_le(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof(T));
}

template <std::integral T>
void append_le(Bytes& out, T value) {
  const auto at = out.size();
  out.resize(at + sizeof(T));
  store_le(out.data() + at, value);
}

inline void append_bytes(Bytes& out, ByteView bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline bool same_bytes(ByteView a, ByteView b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace verger
