#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/log/detail/active_chunk.h"
#include "engine/log/detail/checkpoint_files.h"
#include "engine/log/detail/opening.h"
#include "engine/log/transaction_log.h"

namespace verger::log {

/// The order in which a completed chunk's end becomes durable (docs/formats/log.md). Either crash
/// state is one that opening knows.
enum class RollOrder : std::uint8_t {
  kNewChunkFirst,  ///< a single record did not fit
  kWriterFirst,    ///< a write of several records did not fit, or the chunk is completed early
};

struct TransactionLog::State {
  State(FileSystem& file_system, Path path, LogOptions log_options, Clock& time, Random& chance,
        Log& output, detail::CheckpointFiles checkpoint_files, detail::Judgement judgement);

  FileSystem& files;
  const Path directory;
  const LogOptions options;
  Clock& clock;
  Random& random;
  Log& log;
  const std::int32_t chunk_size;
  std::unique_ptr<FileLock> lock;
  bool truncated = false;

  detail::CheckpointFiles stored;       ///< of the appending thread
  mutable std::mutex checkpoint_mutex;  ///< guards the next one
  mutable Checkpoints checkpoints;      ///< may be ahead of what is stored

  mutable std::mutex table_mutex;  ///< guards the next one
  std::vector<std::shared_ptr<const Chunk>> table;
  std::atomic<std::int64_t> end{0};

  /// Held while chunks come, go or change places: by the appending thread and by a job's.
  std::mutex structure_mutex;
  /// Replaced chunks whose files wait for their last reader.
  std::vector<std::weak_ptr<const Chunk>> retired;

  // Of the appending thread.
  std::optional<detail::ActiveChunk> active;
  std::int64_t append_position = 0;
  std::optional<Error> failure;
  Bytes scratch;

  mutable std::mutex epoch_mutex;  ///< guards the next two
  mutable EpochHistory epochs;
  mutable bool epochs_complete = false;
  std::vector<Epoch> unflushed_epochs;

  // transaction_log.cpp
  std::shared_ptr<const Chunk> chunk_at(LogPosition position) const;
  std::vector<std::shared_ptr<const Chunk>> chunks() const;
  /// Puts `chunk` into the table in place of all it overlaps; returns those.
  std::vector<std::shared_ptr<const Chunk>> put(std::shared_ptr<const Chunk> chunk);
  [[nodiscard]] std::int64_t boundary_above(std::int64_t position) const;
  Result<void> find_epochs() const;
  /// Takes the epochs of a chunk received whole, which no append has seen.
  Result<void> note_epochs_of(const std::shared_ptr<const Chunk>& chunk);

  // transaction_log_append.cpp
  Result<void> check_writable() const;
  /// Keeps the first error: after it nothing may be written.
  Result<void> guarded(Result<void> outcome);
  Result<void> ensure_active();
  Result<void> start_chunk(const ChunkHeader& header);
  [[nodiscard]] ChunkHeader next_header();
  Result<void> append_bytes_at_end(ByteView framed);
  Result<void> flush();
  /// Completes the active chunk; writer.chk is at its end when this returns.
  Result<void> roll(RollOrder order, bool start_next);
  /// A record may fill a chunk to its last byte. That the leader has a next chunk shows that this
  /// one was completed; no message repeats it after a link broke.
  Result<void> complete_filled_chunk();
  Result<LogPosition> append_single(Record record);
};

}  // namespace verger::log
