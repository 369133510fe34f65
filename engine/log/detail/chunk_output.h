#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/base/background_md5.h"
#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::log::detail {

/// Writes a chunk file from front to back: buffered, with the running MD5 that ends up in the
/// footer. Syncing is the caller's. One thread.
class ChunkOutput {
 public:
  /// Continues at `offset`; what lies before is hashed by `rehash`, unless offset is 0.
  /// With `hasher` that thread hashes, from the first append to complete(). With `writes_behind` it
  /// writes, too: errors come later then, at the latest from complete(), and nothing is known of
  /// what is in the file before.
  ChunkOutput(File& file, std::uint64_t offset, std::shared_ptr<Md5Thread> hasher = nullptr,
              bool writes_behind = false)
      : sink_{.file = &file, .written = offset, .on_its_way = offset},
        offset_(offset),
        hasher_(std::move(hasher)),
        writes_behind_(hasher_ != nullptr && writes_behind) {}

  /// Reads the file from 0 to where writing continues.
  Result<void> rehash();
  Result<void> append(ByteView bytes);
  /// Hands the buffer to the file, or to the thread that writes behind; nothing is synced.
  Result<void> flush();
  /// File offset behind everything appended.
  [[nodiscard]] std::uint64_t offset() const { return offset_ + buffer_.size(); }

  struct Completed {
    ChunkFooter footer;
    std::uint64_t file_size = 0;
  };
  /// After data and map: zeros up to the alignment, the footer with the MD5 filled in.
  Result<Completed> complete(ChunkFooter footer);

 private:
  /// Where bytes go; belongs to the thread that writes.
  struct Sink {
    File* file;
    std::uint64_t written;
    std::uint64_t on_its_way;  ///< up to here writing to the disk has begun

    Result<void> write(ByteView bytes);
  };

  Result<void> write(ByteView bytes);
  void hash(ByteView bytes);

  Sink sink_;
  std::uint64_t offset_;  ///< behind all that was flushed
  Bytes buffer_;
  Md5 hash_;
  std::shared_ptr<Md5Thread> hasher_;
  bool writes_behind_;
  std::unique_ptr<BackgroundMd5> background_;  ///< hashes instead of hash_
};

}  // namespace verger::log::detail
