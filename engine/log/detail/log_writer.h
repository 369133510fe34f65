#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "engine/log/detail/active_chunk.h"
#include "engine/log/detail/checkpoint_files.h"
#include "engine/log/detail/known_checkpoints.h"
#include "engine/log/detail/known_epochs.h"
#include "engine/log/detail/live_chunks.h"
#include "engine/log/detail/log_parts.h"
#include "engine/log/log_flush.h"

namespace verger::log::detail {

struct Judgement;

/// The end of a log: the chunk that is written, what was appended and what of it is durable. After
/// an error of a write it refuses all others. One thread; end() is safe from any.
class LogWriter {
 public:
  /// All but `stored` outlive it. The log ends at `end`.
  LogWriter(const LogParts& parts, LiveChunks& chunks, KnownEpochs& epochs,
            KnownCheckpoints& checkpoints, CheckpointFiles stored, LogPosition end);

  /// Brings the directory into the state that an opening has judged it to be in. Before all else.
  Result<void> recover(const Judgement& judgement);

  /// The end of what is durable, and so visible.
  [[nodiscard]] LogPosition end() const {
    return LogPosition(end_.load(std::memory_order_acquire));
  }
  [[nodiscard]] LogPosition append_position() const { return LogPosition(append_position_); }
  [[nodiscard]] bool has_records_in_chunk() const { return active_ && active_->data_size() > 0; }
  /// The chunk that is written; nullptr: none is, at a boundary.
  [[nodiscard]] const Chunk* chunk() const { return active_ ? active_->chunk().get() : nullptr; }
  [[nodiscard]] bool fits(std::int64_t bytes) const { return active_ && active_->fits(bytes); }

  /// kInvalidArgument for a log opened to read; the first error of a write.
  [[nodiscard]] Result<void> check_writable() const;
  /// Keeps the first error: after it nothing may be written.
  Result<void> guarded(Result<void> outcome);

  // As the members of TransactionLog.
  Result<std::vector<LogPosition>> append(std::span<Prepare> prepares);
  Result<LogPosition> append(Record record);
  /// The record of `epoch`, which gets its position, and its event behind the version `expected` of
  /// $epoch-information; durable.
  Result<Epoch> append_epoch(Epoch epoch, std::int64_t expected);
  Result<void> flush();
  Result<std::shared_ptr<LogFlush>> begin_flush();
  Result<void> finish_flush();
  Result<void> complete_chunk();
  Result<void> truncate(LogPosition position);
  Result<void> flush_checkpoints();
  Result<void> publish_chaser();

  // For records and chunks of a leader.

  /// Whole frames that continue the log and fit into the chunk, with the epochs in them.
  Result<void> append_framed_records(ByteView framed, std::span<const Epoch> epochs);
  /// Completes the chunk that is written, and starts none.
  Result<void> end_chunk();
  /// A record may fill a chunk to its last byte. That the leader has a next chunk shows that this
  /// one was completed; no message repeats it after a link broke.
  Result<void> complete_filled_chunk();
  /// In place of an empty one that is written.
  Result<void> start_chunk_as(const ChunkHeader& header);
  /// Lets go of the chunk that is written, which another is to replace.
  void drop_chunk() { active_.reset(); }
  /// The durable end, of chunks that were put in place whole; visible from move_to() on.
  Result<void> store_end(LogPosition end);
  void move_to(LogPosition end);

 private:
  /// The order in which a completed chunk's end becomes durable (docs/formats/log.md). Either crash
  /// state is one that opening knows.
  enum class RollOrder : std::uint8_t {
    kNewChunkFirst,  ///< a single record did not fit
    kWriterFirst,    ///< a write of several records did not fit, or the chunk is completed early
  };

  /// A flush that was begun, and what is published once it is durable.
  struct FlushUnderWay {
    std::shared_ptr<LogFlush> flush;
    std::int64_t data_size = 0;   ///< of the chunk that is written
    std::size_t epoch_count = 0;  ///< of unflushed_epochs_
  };

  Result<void> flush_now();
  Result<void> prepare_flush();
  /// Waits for the disk where nothing else has. Every call that changes which chunk is written, or
  /// needs the end to be durable, calls it first.
  Result<void> complete_flush();
  /// Completes the chunk that is written; writer.chk is at its end when this returns.
  Result<void> roll(RollOrder order, bool start_next);
  Result<void> ensure_active();
  Result<void> start_chunk(const ChunkHeader& header);
  [[nodiscard]] ChunkHeader next_header();
  Result<void> append_bytes(ByteView framed);

  const LogParts& parts_;
  LiveChunks& chunks_;
  KnownEpochs& epochs_;
  KnownCheckpoints& checkpoints_;
  CheckpointFiles stored_;
  std::atomic<std::int64_t> end_;
  std::int64_t append_position_;
  std::optional<ActiveChunk> active_;
  std::optional<Error> failure_;
  std::vector<Epoch> unflushed_epochs_;
  std::optional<FlushUnderWay> flush_under_way_;
  Bytes scratch_;
};

}  // namespace verger::log::detail
