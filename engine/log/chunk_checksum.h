#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/background_md5.h"
#include "engine/base/digest.h"
#include "engine/base/file_verification.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::log {

/// Compares a completed chunk with the MD5 in its footer while its records are read anyway, from
/// the first one on. One thread.
class ChunkChecksum {
 public:
  /// `in_background`: a thread of its own hashes.
  ChunkChecksum(std::shared_ptr<const Chunk> chunk, bool in_background);
  /// `hasher` hashes, beside other messages; nullptr: who adds the records.
  ChunkChecksum(std::shared_ptr<const Chunk> chunk, std::shared_ptr<Md5Thread> hasher);
  ~ChunkChecksum();
  ChunkChecksum(ChunkChecksum&&) noexcept;
  ChunkChecksum& operator=(ChunkChecksum&&) noexcept;

  /// The next record of the chunk, as a scanner gives it. Error: kIo.
  Result<void> add(const LogRecord& record);
  /// What was not added is read now. Errors: kCorruption, kIo.
  Result<void> finish();

 private:
  Result<void> read_to(std::uint64_t end);
  void hash(ByteView bytes);

  std::shared_ptr<const Chunk> chunk_;
  std::unique_ptr<BackgroundMd5> background_;
  Md5 md5_;
  Bytes waiting_;  ///< not hashed yet: large pieces cost least
  std::uint64_t at_ = 0;
};

/// A completed chunk, to be compared with the MD5 in its footer.
VerifiedFile verified_file(std::shared_ptr<const Chunk> chunk);

}  // namespace verger::log
