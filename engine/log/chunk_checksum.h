#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/background_md5.h"
#include "engine/base/digest.h"
#include "engine/base/md5_lanes.h"
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

/// Compares completed chunks with the MD5s in their footers in a thread of its own, which reads
/// them from end to end, side by side: for chunks that are about to be read. One thread uses it;
/// its end is the thread's.
class ChunkVerification {
 public:
  static constexpr std::size_t kMostChunks = Md5Lanes::kLanes;
  /// At most kMostChunks.
  explicit ChunkVerification(std::vector<std::shared_ptr<const Chunk>> chunks);

  [[nodiscard]] bool includes(const Chunk& chunk) const;
  [[nodiscard]] const Chunk& last() const { return *chunks_.back(); }
  /// Waits for one of the chunks. Errors: kCorruption, kIo, those of `pause`, which is called again
  /// and again.
  Result<void> finish(const Chunk& chunk, const std::function<Result<void>()>& pause);

 private:
  void compare(const std::stop_token& stop);
  void note(std::size_t chunk, Result<void> outcome);
  [[nodiscard]] std::size_t number_of(const Chunk& chunk) const;

  std::vector<std::shared_ptr<const Chunk>> chunks_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::optional<Result<void>>> outcomes_;  ///< one for each chunk
  std::jthread thread_;                                ///< last: it ends before what it uses
};

}  // namespace verger::log
