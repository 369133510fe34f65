#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/uuid.h"

namespace verger {

/// Takes fields from the front of some bytes. Once one does not fit, ok() is false and all further
/// fields are zero or empty: the caller looks once at the end.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  template <std::integral T>
  T integer() {
    if (left() < sizeof(T)) {
      return fail(), T{};
    }
    const T value = load_le<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  ByteView bytes(std::size_t size) {
    if (left() < size) {
      return fail(), ByteView{};
    }
    const ByteView view(at_, size);
    at_ += size;
    return view;
  }
  template <std::size_t kSize>
  std::array<std::byte, kSize> array() {
    std::array<std::byte, kSize> out{};
    std::ranges::copy(bytes(kSize), out.begin());
    return out;
  }
  Uuid uuid() { return {.bytes = array<16>()}; }
  /// i32 length, then the bytes.
  ByteView blob() {
    const auto size = integer<std::int32_t>();
    return size < 0 ? (fail(), ByteView{}) : bytes(static_cast<std::size_t>(size));
  }
  /// LEB128 byte count, then UTF-8.
  std::string_view string() {
    std::uint64_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = integer<std::uint8_t>();
      size |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) {
        break;
      }
      if (shift == 28) {
        return fail(), std::string_view{};
      }
    }
    return as_text(bytes(size));
  }

 private:
  void fail() {
    ok_ = false;
    at_ = end_;
  }

  const std::byte* at_;
  const std::byte* end_;
  bool ok_ = true;
};

}  // namespace verger
