#include "engine/backup/detail/segment_codec.h"

#include <algorithm>
#include <zstd.h>

#include "engine/base/assert.h"
#include "engine/base/deleter.h"

namespace verger::backup::detail {
namespace {

/// Faster than a disk, and most of the gain.
constexpr int kZstdLevel = 3;

}  // namespace

struct SegmentCompressor::State {
  std::unique_ptr<ZSTD_CCtx, Deleter<ZSTD_freeCCtx>> context{ZSTD_createCCtx()};
  Bytes compressed;
};

SegmentCompressor::SegmentCompressor() : state_(std::make_unique<State>()) {
  VERGER_ASSERT(state_->context != nullptr);
}
SegmentCompressor::SegmentCompressor(SegmentCompressor&&) noexcept = default;
SegmentCompressor& SegmentCompressor::operator=(SegmentCompressor&&) noexcept = default;
SegmentCompressor::~SegmentCompressor() = default;

ByteView SegmentCompressor::compress(ByteView plain) {
  auto& out = state_->compressed;
  out.resize(ZSTD_compressBound(plain.size()));
  const auto size = ZSTD_compressCCtx(state_->context.get(), out.data(), out.size(), plain.data(),
                                      plain.size(), kZstdLevel);
  return ZSTD_isError(size) != 0 || size >= plain.size() ? plain : ByteView(out).first(size);
}

bool decompress_segment(ByteView stored, MutableBytes plain) {
  if (stored.size() == plain.size()) {
    std::ranges::copy(stored, plain.begin());
    return true;
  }
  const auto size = ZSTD_decompress(plain.data(), plain.size(), stored.data(), stored.size());
  return ZSTD_isError(size) == 0 && size == plain.size();
}

}  // namespace verger::backup::detail
