#include "engine/verify/detail/file_checksum.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/assert.h"

namespace verger::verify::detail {
namespace {

constexpr std::uint64_t kBlockSize = 1U << 20U;

}  // namespace

FileChecksum::FileChecksum(ReadAt read, std::uint64_t size)
    : read_(std::move(read)), end_(size - sizeof(Md5Digest)) {
  VERGER_ASSERT(size >= sizeof(Md5Digest));
}

Result<bool> FileChecksum::step(std::uint64_t bytes) {
  for (std::uint64_t hashed = 0; at_ < end_ && (hashed == 0 || hashed < bytes);
       hashed += block_.size()) {
    block_.resize(std::min(kBlockSize, end_ - at_));
    VERGER_RETURN_IF_ERROR(read_(at_, block_));
    hash_.update(block_);
    at_ += block_.size();
  }
  if (at_ < end_) {
    return false;
  }
  Md5Digest stored{};
  VERGER_RETURN_IF_ERROR(read_(end_, stored));
  const auto computed = hash_.finish();
  if (computed != stored) {
    return Error{Errc::kCorruption, fmt::format("the bytes have the MD5 {}, the file says {}",
                                                to_hex(computed), to_hex(stored))};
  }
  return true;
}

}  // namespace verger::verify::detail
