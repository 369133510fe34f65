#pragma once

#include <optional>

#include "engine/backup/detail/copy_queue.h"
#include "engine/backup/source.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/base/uuid.h"
#include "engine/log/transaction_log.h"

namespace verger::backup::detail {

/// The log part of a copy: checkpoints first, then the chunks that they speak of. One thread.
class LogCopy {
 public:
  /// All outlive it.
  LogCopy(FileSystem& files, const BackupSource& source, BlobStore& store, Clock& clock,
          Random& random, Log& log)
      : disk_(files), source_(source), store_(store), clock_(clock), random_(random), log_(log) {}

  /// What tells the log as it is now from any other one, and from itself once it has grown: its end
  /// and its newest chunk's header and records. Empty: it has none. Errors: those of opening it.
  Result<std::string> identity();
  /// Whether the newest records of an earlier generation are still where they were: this log is
  /// that one, grown. Errors: those of opening it.
  Result<bool> continues(const Manifest& earlier);
  /// Before anything is copied: the chunks that compare() expects to be there still.
  Result<void> note_chunks();
  /// What chaser.chk says now; 0 where it is missing. Errors: as of copy_checkpoints().
  Result<LogPosition> chaser();
  /// Copies chaser, epoch, writer and proposal, in this order, so that none lies above the writer.
  /// May be repeated. Errors: kCorruption (a file without 8 bytes), kIo.
  Result<void> copy_checkpoints();
  /// Opens the log and selects what is copied of it: every chunk that begins below the writer, the
  /// last one up to there. A restored log ends at the chaser, or, `whole_log`, at the writer.
  /// Errors: those of opening it; kUnavailable, where a restored copy would lose a chunk or be
  /// refused by the server.
  Result<void> select_chunks(CopyQueue& queue, bool whole_log, std::int64_t max_truncation);
  /// After the copy: has a scavenge or a truncation changed the log since note_chunks()? Errors:
  /// kConflict.
  Result<void> compare();

  [[nodiscard]] const BackupPositions& positions() const { return positions_; }
  [[nodiscard]] const std::vector<BackedUpFile>& checkpoints() const { return checkpoints_; }
  /// Of the selected chunks, as they will be stored.
  [[nodiscard]] std::uint64_t selected_bytes() const { return selected_bytes_; }
  /// Those of the log; none where epoch.chk knows of none, which does not mean that there is none.
  [[nodiscard]] const std::vector<log::Epoch>& epochs() const { return epochs_; }

 private:
  /// One file, whatever becomes of its name.
  struct NotedChunk {
    Path path;
    Uuid id;
  };

  /// nullopt: there is no such file.
  Result<std::optional<Bytes>> read_checkpoint(std::string_view name);
  Result<std::optional<std::int64_t>> copy_checkpoint(std::string_view name);
  Result<std::unique_ptr<log::TransactionLog>> open_log();
  void select(const std::shared_ptr<const log::Chunk>& chunk, CopyQueue& queue);

  FileSystem& disk_;
  const BackupSource& source_;
  BlobStore& store_;
  Clock& clock_;
  Random& random_;
  Log& log_;
  BackupPositions positions_;
  std::vector<BackedUpFile> checkpoints_;
  std::unique_ptr<log::TransactionLog> opened_;
  std::vector<log::Epoch> epochs_;
  std::vector<NotedChunk> noted_;
  std::vector<std::shared_ptr<const log::Chunk>> selected_;
  std::uint64_t selected_bytes_ = 0;
};

/// A database's other files in its directory that belong to it: of servers with secondary indexes.
Result<void> want_other_files(FileSystem& files, const BackupSource& source, CopyQueue& queue);

}  // namespace verger::backup::detail
