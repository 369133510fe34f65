#pragma once

#include <cstdint>
#include <functional>

#include "engine/base/digest.h"
#include "engine/base/result.h"

namespace verger::verify::detail {

/// Compares a file's bytes with the MD5 that they end with, in pieces.
class FileChecksum {
 public:
  using ReadAt = std::function<Result<void>(std::uint64_t offset, MutableBytes into)>;
  /// `size`: with the MD5, at least its 16 bytes.
  FileChecksum(ReadAt read, std::uint64_t size);
  /// True once all is read and the sums are equal. Errors: kCorruption (another sum), those of
  /// reading.
  Result<bool> step(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t done() const { return at_; }

 private:
  ReadAt read_;
  std::uint64_t end_;
  std::uint64_t at_ = 0;
  Md5 hash_;
  Bytes block_;
};

}  // namespace verger::verify::detail
