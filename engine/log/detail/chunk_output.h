#pragma once

#include <cstdint>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::log::detail {

/// Writes a chunk file from front to back: buffered, with the running MD5 that ends up in the
/// footer. Syncing is the caller's. One thread.
class ChunkOutput {
 public:
  /// Goes on at `offset`; what lies before is hashed by `rehash`, unless offset is 0.
  ChunkOutput(File& file, std::uint64_t offset) : file_(&file), written_(offset) {}

  /// Reads the file from 0 to where writing goes on.
  Result<void> rehash();
  Result<void> append(ByteView bytes);
  /// Hands the buffer to the file; nothing is synced.
  Result<void> flush();
  /// File offset behind everything appended.
  [[nodiscard]] std::uint64_t offset() const { return written_ + buffer_.size(); }

  struct Completed {
    ChunkFooter footer;
    std::uint64_t file_size = 0;
  };
  /// After data and map: zeros up to the alignment, the footer with the MD5 filled in.
  Result<Completed> complete(ChunkFooter footer);

 private:
  Result<void> write(ByteView bytes);

  File* file_;
  std::uint64_t written_;
  Bytes buffer_;
  Md5 hash_;
};

}  // namespace verger::log::detail
