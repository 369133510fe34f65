#pragma once

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

/// Reads chunk files and scavenge progress, as of one moment; one step, which
/// does not fail: each of the two says for itself why it could not be read.
class FilesLook final : public Job {
 public:
  FilesLook(FileSystem& files, DatabasePlace place, std::uint64_t size_limit)
      : files_(files), place_(std::move(place)), size_limit_(size_limit) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const Result<node::ChunkInventory>& chunks() const { return chunks_; }
  [[nodiscard]] const Result<ScavengeProgress>& progress() const { return progress_; }

 private:
  FileSystem& files_;
  DatabasePlace place_;
  std::uint64_t size_limit_;
  Result<node::ChunkInventory> chunks_ = Error{Errc::kUnavailable, "not read yet"};
  Result<ScavengeProgress> progress_ = Error{Errc::kUnavailable, "not read yet"};
};

/// Opens the database and computes the digest up to a scavenge point; the point is looked for in
/// the first step. Errors: kNotFound, those of opening and reading.
class DigestOfFiles final : public node::DigestWork {
 public:
  DigestOfFiles(DatabaseReading reading, std::int64_t point)
      : reading_(std::move(reading)), point_(point) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const streams::DatabaseDigest& digest() const override { return job_->digest(); }

 private:
  DatabaseReading reading_;
  std::int64_t point_;
  std::unique_ptr<streams::Database> database_;
  std::optional<streams::DigestJob> job_;
};

/// What only the log and its index tell.
struct LogFacts {
  std::string database_id;
  std::int32_t chunk_size = 0;
  std::vector<streams::ScavengePoint> points;
};

/// Reads LogFacts; one step, which may take long on a large index.
class LogLook final : public Job {
 public:
  explicit LogLook(DatabaseReading reading) : reading_(std::move(reading)) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const LogFacts& facts() const { return facts_; }

 private:
  DatabaseReading reading_;
  LogFacts facts_;
};

}  // namespace verger::external
