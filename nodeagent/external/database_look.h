#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/streams/event_store.h"
#include "nodeagent/api/agent.h"
#include "nodeagent/node/inspection.h"

namespace verger::external {

struct DatabasePlace {
  Path database;
  Path index;  ///< empty: "index" in `database`
  [[nodiscard]] Path index_directory() const { return index.empty() ? database / "index" : index; }
};

/// A database that a server may have open, to be opened by us for reading.
struct DatabaseReading {
  FileSystem& files;
  DatabasePlace place;
  Clock& clock;
  Random& random;
  Log& log;
  /// To the end of what is flushed: the newest of it may not be committed, which only the server
  /// can tell. Errors: those of streams::Database::open.
  [[nodiscard]] Result<std::unique_ptr<streams::Database>> open() const;
};

/// How long to leave a database alone after a look that took so long: looks at a large one are
/// rare, but one that stood still, with its disk or its machine, does not hide for long what comes
/// after it.
std::chrono::milliseconds rest_after_look(std::chrono::milliseconds took);

/// The chunk files as a directory listing shows them: of each chunk the newest version. chunk_size
/// is not filled in. Errors: kNotFound, kIo.
Result<node::ChunkInventory> list_chunks(FileSystem& files, const Path& database);

/// How far scavenges of this node came.
struct ScavengeProgress {
  std::optional<api::UnfinishedScavenge> unfinished;
  std::optional<api::ScavengePoint> finished;
};
/// From scavenging.db, without locking it. Nothing where there is no such file. Errors:
/// kUnavailable (it changes too fast; or it is larger than `size_limit`, so that it is not copied,
/// and a scavenge has it open), kUnsupported (a newer server wrote it), kCorruption, kIo.
Result<ScavengeProgress> read_scavenge_progress(FileSystem& files, const Path& index_directory,
                                                std::uint64_t size_limit);

/// By what a change of scavenging.db, or of what is written beside it, shows without reading it.
/// On a real disk only.
struct ProgressStamp {
  std::string text{};    ///< sizes, times and inodes; the same: nothing was written
  bool settled = false;  ///< false: so new that a later write could have the same time
  friend bool operator==(const ProgressStamp& a, const ProgressStamp& b) {
    return a.text == b.text;
  }
};
/// nullopt: it cannot be determined.
std::optional<ProgressStamp> stamp_of_progress(const Path& index_directory);

/// The tables that the index map names. Errors: those of reading it, kNotFound (a table that was
/// merged away meanwhile), kIo.
Result<node::IndexInventory> list_tables(FileSystem& files, const Path& index_directory);

/// Reads chunk files, index tables and scavenge progress, as of one moment; one step, which does
/// not fail: each says for itself why it could not be read. Tables that could not be are not known.
/// With `known`, the stamp at which the progress was read before, it is not read again while
/// nothing was written: progress_is_known() then, and progress() says nothing.
class FilesLook final : public Job {
 public:
  FilesLook(FileSystem& files, DatabasePlace place, std::uint64_t size_limit,
            std::optional<ProgressStamp> known = std::nullopt)
      : files_(files),
        place_(std::move(place)),
        size_limit_(size_limit),
        known_(std::move(known)) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const Result<node::ChunkInventory>& chunks() const { return chunks_; }
  [[nodiscard]] const node::IndexInventory& tables() const { return tables_; }
  [[nodiscard]] const Result<ScavengeProgress>& progress() const { return progress_; }
  [[nodiscard]] bool progress_is_known() const { return progress_is_known_; }
  [[nodiscard]] const std::optional<ProgressStamp>& stamp() const { return stamp_; }

 private:
  FileSystem& files_;
  DatabasePlace place_;
  std::uint64_t size_limit_;
  std::optional<ProgressStamp> known_;
  std::optional<ProgressStamp> stamp_;
  bool progress_is_known_ = false;
  Result<node::ChunkInventory> chunks_ = Error{Errc::kUnavailable, "not read yet"};
  node::IndexInventory tables_;
  Result<ScavengeProgress> progress_ = Error{Errc::kUnavailable, "not read yet"};
};

/// Opens the database and computes the digest up to a scavenge point; the point is looked for in
/// the first step. Errors: kNotFound, those of opening and reading.
class DigestOfFiles final : public node::DigestWork {
 public:
  DigestOfFiles(DatabaseReading reading, std::int64_t point, streams::DigestOptions options)
      : reading_(std::move(reading)), point_(point), options_(std::move(options)) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const streams::DatabaseDigest& digest() const override { return job_->digest(); }
  [[nodiscard]] LogPosition position() const override {
    return job_ ? job_->position() : LogPosition(0);
  }
  [[nodiscard]] LogPosition end() const override { return job_ ? job_->end() : LogPosition(0); }

 private:
  DatabaseReading reading_;
  std::int64_t point_;
  streams::DigestOptions options_;
  std::unique_ptr<streams::Database> database_;
  std::optional<streams::DigestJob> job_;
};

/// What only the log and its index tell.
struct LogFacts {
  std::string database_id;
  std::int32_t chunk_size = 0;
  std::vector<streams::ScavengePoint> points;
  std::map<std::int64_t, LogPosition> point_ends;  ///< of the newest points: position -> its end
  LogPosition read_to{0};                          ///< all of this is as of here
};

/// Reads LogFacts. With what is `known` of the same process's log it reads only what was appended
/// since: nothing where writer.chk stands still. Else it opens log and index, which may take long
/// on a large index.
class LogLook final : public Job {
 public:
  explicit LogLook(DatabaseReading reading, std::optional<LogFacts> known = std::nullopt)
      : reading_(std::move(reading)), known_(std::move(known)) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const LogFacts& facts() const { return facts_; }

 private:
  Result<StepOutcome> read_all();
  /// Begins to read on; false: what is known is out of date.
  Result<bool> begin_reading_on();
  Result<StepOutcome> read_on(Budget budget);

  DatabaseReading reading_;
  std::optional<LogFacts> known_;
  std::unique_ptr<log::TransactionLog> log_;
  std::optional<log::LogCursor> cursor_;
  LogFacts facts_;
};

}  // namespace verger::external
