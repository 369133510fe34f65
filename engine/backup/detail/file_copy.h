#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/backup/blob_store.h"
#include "engine/backup/detail/page_cache.h"
#include "engine/base/digest.h"

namespace verger::backup::detail {

/// How many bytes one unit of a job's budget is: a record, about.
inline constexpr std::uint64_t kBytesPerUnit = 256;
/// Read, hashed and written at once.
inline constexpr std::uint64_t kBlockSize = 1ULL << 20U;

using ReadAt = std::function<Result<void>(std::uint64_t offset, MutableBytes into)>;

/// The first `size` bytes of a file on their way into a store, in pieces. One thread at a time.
class FileCopy {
 public:
  static Result<FileCopy> begin(BlobStore& store, ReadAt read, std::uint64_t size, ReadOnce cache);

  /// Copies up to `most` bytes, at least a block; true once all is stored. Errors: those of reading
  /// and of the store.
  Result<bool> step(std::uint64_t most);
  [[nodiscard]] std::uint64_t copied() const { return at_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Once it is done.
  [[nodiscard]] const Sha256Digest& digest() const { return digest_; }

 private:
  FileCopy(std::unique_ptr<BlobWriter> writer, ReadAt read, std::uint64_t size, ReadOnce cache)
      : writer_(std::move(writer)), read_(std::move(read)), size_(size), cache_(std::move(cache)) {}

  std::unique_ptr<BlobWriter> writer_;
  ReadAt read_;
  std::uint64_t size_;
  ReadOnce cache_;
  std::uint64_t at_ = 0;
  Sha256 hash_;
  Sha256Digest digest_{};
  Bytes buffer_;
};

/// Stores bytes that are in memory.
Result<Sha256Digest> store_bytes(BlobStore& store, ByteView bytes);

}  // namespace verger::backup::detail
