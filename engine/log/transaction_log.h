#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/log/chunk.h"
#include "engine/log/epoch.h"
#include "engine/log/log_flush.h"
#include "engine/log/record.h"

namespace verger::log {

enum class Access : std::uint8_t {
  kReadOnly,  ///< no file is created, changed or locked; copes with chunks switched under it
  kWrite,     ///< takes the lock, recovers, may append
};

struct LogOptions {
  Access access = Access::kReadOnly;
  /// 0 takes it from the first chunk's header (256 MiB for an empty directory).
  std::int32_t chunk_size = 0;
  /// Largest distance a pending truncate.chk may cut; -1 = no limit.
  std::int64_t max_truncation = kDefaultChunkSize;
  /// Skip the search of /proc for a server that has the files open (where it cannot be read).
  bool assume_stopped = false;
  /// Followers refuse to write epochs of their own; a new database is created when missing.
  bool create = false;
  /// A thread of its own hashes what is appended: for who writes much and has a processor to spare.
  bool hash_in_background = false;
};

/// The numbers in the *.chk files. proposal is an epoch number; the others are log positions.
struct Checkpoints {
  LogPosition writer{0};
  LogPosition chaser{0};
  LogPosition epoch{-1};
  std::int32_t proposal = -1;
  LogPosition truncate{-1};
};

/// The transaction log of one database directory.
///
/// Reading is safe from any thread, beside one appending thread. Appending, truncating and
/// checkpoints belong to one thread. switch_in_chunk may be called from a job's thread.
/// Stops by destruction: nothing runs in the background, but the requested hashing.
class TransactionLog {
 public:
  struct State;
  /// Read-only: opens what is there, without recovery. For writing: checks everything it relies on
  /// first (a wrong writer.chk is refused, nothing is deleted), carries out a pending truncation,
  /// takes `verger.lock`, then recovers (old versions, excess chunk N+1, *.tmp go).
  /// Errors: kNotFound (directory, chunk), kCorruption, kUnsupported, kRefused (lock or a running
  /// server), kInvalidArgument (chunk size), kIo; each names file and next action.
  static Result<std::unique_ptr<TransactionLog>> open(FileSystem& files, const Path& directory,
                                                      LogOptions options, Clock& clock,
                                                      Random& random, Log& log);
  ~TransactionLog();

  const Path& directory() const;
  std::int32_t chunk_size() const;
  ChunkNumber chunk_of(LogPosition position) const;
  Checkpoints checkpoints() const;
  /// True when open() carried out a pending truncation.
  bool truncated_at_open() const;

  /// Live chunks in order, the active one last (absent while writer.chk is on a boundary).
  std::vector<std::shared_ptr<const Chunk>> chunks() const;
  /// The live chunk that covers `position`; nullptr when there is none.
  std::shared_ptr<const Chunk> chunk_at(LogPosition position) const;

  /// End of the readable log: what has been flushed.
  LogPosition end() const;
  /// One record. Errors: kNotFound (scavenged, or not below end()), kCorruption, kIo.
  Result<LogRecord> read(LogPosition position, Bytes& buffer) const;
  Result<bool> has_record_at(LogPosition position) const;

  // --- Appending (one thread) ---

  /// Where the next record would start. Differs from end() between append and flush.
  LogPosition append_position() const;
  /// Appends prepares of one write so that they do not straddle a chunk; completes the chunk first
  /// when they do not fit. Sets position, and transaction_position where it is kNoPosition (then to
  /// the position of the first). Returns the positions. Not durable or visible before flush().
  /// What has to end its chunk is followed by complete_chunk().
  /// Errors: kInvalidArgument (too large), kNoSpace, kIo: the writer is then failed for good.
  Result<std::vector<LogPosition>> append(std::span<Prepare> prepares);
  Result<LogPosition> append(Commit commit);
  /// Writes the epoch record and its $epoch-information event, flushes, sets epoch.chk.
  Result<Epoch> append_epoch(EpochNumber number, const Uuid& leader_instance_id);
  /// Makes everything appended durable (data, then writer.chk) and visible to readers.
  Result<void> flush();
  /// The same in three parts: sync() of what begin_flush() returns may be called by another thread,
  /// beside further appends, which the next flush takes. nullptr: there is nothing to flush.
  /// finish_flush() makes it visible; it waits for sync(), and calls it where nothing has. Until
  /// then one flush is under way; whatever needs a durable end (flush(), a chunk's completion,
  /// truncate()) finishes it first.
  Result<std::shared_ptr<LogFlush>> begin_flush();
  Result<void> finish_flush();
  /// Completes the active chunk and starts the next one.
  Result<void> complete_chunk();

  // --- Replication (one thread) ---

  /// Appends whole framed records exactly as the leader has them, at append_position().
  /// Errors: kConflict (they do not start there), kCorruption.
  Result<void> append_replicated(ByteView framed_records);
  /// The leader completed its active chunk: the next record starts at the next chunk.
  Result<void> complete_replicated_chunk();
  /// Header of the chunk to be started next, taken from the leader so that ChunkIds agree.
  Result<void> start_replicated_chunk(const ChunkHeader& header);
  /// Installs a completed (scavenged) chunk file received whole as `temporary` (in the directory,
  /// ends in ".tmp") at append_position(), or in place of the log's last part when it starts before
  /// that and does not end before it; MD5 is verified. After a crash at any moment, either what
  /// was here or what was received is there afterwards. Errors: kConflict (it lies elsewhere),
  /// kCorruption.
  Result<void> receive_chunk(const Path& temporary);
  /// Cuts the log to `position` at once (the server does it over a restart; docs/formats/log.md).
  /// A scavenged chunk that covers it goes whole. Readers of removed chunks fail afterwards.
  Result<void> truncate(LogPosition position);

  void set_chaser(LogPosition position);
  void set_proposal(std::int32_t number);
  /// Writes and syncs the checkpoint files that changed.
  Result<void> flush_checkpoints();
  /// Writes chaser.chk, for a process that copies the files beside this one, and syncs nothing: a
  /// power cut may leave an older value, which is as good for this process.
  Result<void> publish_chaser();

  const EpochHistory& epochs() const;

  // --- Scavenge ---

  /// Puts a completed chunk file (ChunkWriter's result) in place of the live chunks of exactly its
  /// range: renamed to the next version, the directory synced, old files deleted once unused.
  /// Errors: kConflict (the live chunks do not align with its range), kIo.
  Result<std::shared_ptr<const Chunk>> switch_in_chunk(const Path& temporary);

 private:
  explicit TransactionLog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Reads records in log order across chunks, forward.
class LogCursor {
 public:
  /// From the first record at or after `from`, up to `end` (exclusive). With read-ahead.
  LogCursor(const TransactionLog& log, LogPosition from, LogPosition end);
  LogCursor(LogCursor&&) noexcept;
  ~LogCursor();
  /// nullopt at the end. The views are valid until the next call.
  Result<std::optional<LogRecord>> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The last record that starts before `position`, crossing chunks backward; nullopt at the start.
Result<std::optional<LogRecord>> read_before(const TransactionLog& log, LogPosition position,
                                             Bytes& buffer);

}  // namespace verger::log
