#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>

#include "engine/base/bytes.h"

namespace verger {

/// Writes fields one after the other into memory that is large enough: what ByteReader reads.
class ByteWriter {
 public:
  explicit ByteWriter(std::byte* at) : at_(at) {}

  template <std::integral T>
  void integer(T value) {
    store_le(at_, value);
    at_ += sizeof(T);
  }
  void bytes(ByteView bytes) {
    if (!bytes.empty()) {
      std::memcpy(at_, bytes.data(), bytes.size());
      at_ += bytes.size();
    }
  }
  /// The length in 32 bits before the bytes.
  void blob(ByteView data) {
    integer(static_cast<std::int32_t>(data.size()));
    bytes(data);
  }

 private:
  std::byte* at_;
};

}  // namespace verger
