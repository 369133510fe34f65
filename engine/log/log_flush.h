#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::log {

/// The part of a flush that waits for the disk: the records of a chunk file, then writer.chk, which
/// never promises bytes that a power cut could remove. TransactionLog::begin_flush makes it.
/// Safe from any thread; the log may append meanwhile.
class LogFlush {
 public:
  /// The log is durable up to `end` when sync() is done. Both files are open for writing.
  LogFlush(std::shared_ptr<File> chunk, std::shared_ptr<File> writer_checkpoint, std::int64_t end);

  /// Once; further calls wait for the first one and return what it did. Errors: kIo, kNoSpace; the
  /// log is then failed for good.
  Result<void> sync();
  [[nodiscard]] std::int64_t end() const { return end_; }

 private:
  Result<void> sync_both();

  std::shared_ptr<File> chunk_;
  std::shared_ptr<File> writer_checkpoint_;
  std::int64_t end_;
  std::mutex mutex_;
  std::optional<Result<void>> outcome_;
};

}  // namespace verger::log
