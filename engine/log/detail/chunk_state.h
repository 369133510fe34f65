#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "engine/log/chunk.h"
#include "engine/log/detail/posmap.h"

namespace verger::log {

struct Chunk::State {
  FileSystem* files = nullptr;
  Path path;
  int version = 0;
  std::unique_ptr<File> file;
  ChunkHeader header;
  std::optional<ChunkFooter> footer;
  std::uint64_t file_size = 0;
  /// Grows in the active chunk; what lies below never changes.
  std::atomic<std::int64_t> data_size{0};
  /// The log was truncated below this chunk: it must no longer be read.
  std::atomic<bool> gone{false};
  /// Replaced by a newer file: the last one who lets go of it removes the file.
  std::atomic<bool> remove_when_unused{false};
  mutable std::mutex posmap_mutex;
  mutable std::shared_ptr<const detail::Posmap> posmap;

  /// Loads the map at its first use.
  Result<std::shared_ptr<const detail::Posmap>> positions() const;
  [[nodiscard]] std::int64_t start_position() const { return header.start_position().value(); }
  /// The record whose frame starts at `actual`, in `buffer`.
  Result<LogRecord> read_actual(std::int64_t actual, Bytes& buffer) const;
  /// Checks and decodes one whole frame, read from `actual`, in place of what `record` held.
  Result<void> decode(ByteView framed, std::int64_t actual, LogRecord& record) const;
  Error corrupt(std::int64_t actual, std::string_view what) const;
};

/// What only the log's own code may do to a chunk.
class ChunkAccess {
 public:
  static Chunk::State& state(const Chunk& chunk) { return *chunk.state_; }
  /// Makes records up to `data_size` of the active chunk visible.
  static void publish(const Chunk& chunk, std::int64_t data_size) {
    chunk.state_->data_size.store(data_size, std::memory_order_release);
  }
};

}  // namespace verger::log
