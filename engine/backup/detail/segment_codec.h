#pragma once

#include <memory>

#include "engine/base/bytes.h"

namespace verger::backup::detail {

/// zstd over single segments. One thread.
class SegmentCompressor {
 public:
  SegmentCompressor();
  SegmentCompressor(SegmentCompressor&&) noexcept;
  SegmentCompressor& operator=(SegmentCompressor&&) noexcept;
  ~SegmentCompressor();
  /// The segment as it is stored: compressed, or `plain` itself where that is not larger. Valid
  /// until the next call.
  ByteView compress(ByteView plain);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What compress() made of a segment of plain.size() bytes. False: it is none of these.
[[nodiscard]] bool decompress_segment(ByteView stored, MutableBytes plain);

}  // namespace verger::backup::detail
