#pragma once

#include <functional>
#include <gmock/gmock.h>
#include <map>
#include <memory>
#include <string>

#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/restore_job.h"
#include "engine/backup/verify_job.h"
#include "engine/base/memory_file_system.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"

namespace verger::backup {

/// Steps a job to its end; `between` is called before each step.
inline Result<void> run_to_end(Job& job, const std::function<void()>& between = {},
                               Budget budget = {.units = 16}) {
  for (;;) {
    if (between) {
      between();
    }
    VERGER_TRY(const auto outcome, job.step(budget));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
  }
}

/// All files below a directory, by their path in it.
inline std::map<std::string, Bytes> tree_of(FileSystem& files, const Path& directory,
                                            const std::string& prefix = {}) {
  std::map<std::string, Bytes> found;
  for (const auto& entry : value(files.list(directory))) {
    if (entry.is_directory) {
      found.merge(tree_of(files, directory / entry.name, prefix + entry.name + "/"));
    } else {
      found[prefix + entry.name] = value(read_file(files, directory / entry.name));
    }
  }
  return found;
}

inline std::int64_t checkpoint_in(FileSystem& files, const Path& path) {
  return load_le<std::int64_t>(value(read_file(files, path)).data());
}

/// A small database at /db, and a repository at /repository, on a disk in memory.
class BackupCase {
 public:
  explicit BackupCase(test::BuilderOptions options = {})
      : builder(disk, "/db", options), random(options.seed + 100) {
    repository = std::make_unique<Repository>(
        value(Repository::open(store, Repository::Create::kIfMissing)));
  }

  /// Several chunks, tables on two levels, metadata and a deleted stream.
  void fill(int writes = 150) {
    for (int i = 0; i < writes; ++i) {
      builder.write(fmt::format("stream-{}", i % 7), 1 + i % 3,
                    static_cast<std::size_t>(100 + 37 * (i % 11)));
    }
    builder.metadata("stream-1", R"({"$maxCount":3})");
    builder.hard_delete("stream-6");
  }

  BackupOptions options(SourceState state) {
    BackupOptions options;
    options.source.directory = "/db";
    options.source.state = state;
    options.node.node = "n1";
    options.session_interval = 1;
    return options;
  }

  Result<Manifest> back_up(BackupOptions options, const std::function<void()>& between = {}) {
    BackupJob job(disk, *repository, std::move(options), clock, random, null_log());
    VERGER_RETURN_IF_ERROR(run_to_end(job, between));
    progress = job.progress();
    clock.advance_seconds(60);
    return job.manifest();
  }

  Result<void> restore(const Manifest& manifest, const Path& directory, bool keep_old = false) {
    RestoreOptions how;
    how.directory = directory;
    how.keep_old = keep_old;
    RestoreJob job(disk, store, manifest, how, clock, random, null_log());
    auto outcome = run_to_end(job);
    resumed = job.resumed_bytes();
    return outcome;
  }

  /// As a node opens it: the log is cut where truncate.chk says.
  std::unique_ptr<streams::Database> open(const Path& directory) {
    return value(streams::Database::open(
        disk, directory, test::database_options(builder.options(), log::Access::kWrite),
        /*commit_all=*/true, clock, random, null_log()));
  }

  /// Both digests of the log below `end`.
  std::string digest(const streams::Database& database, LogPosition end) {
    streams::DigestJob job(database, end, test::kTestTime);
    value(run_to_end(job, {}, Budget{}));
    return to_hex(job.digest().logical) + to_hex(job.digest().readable);
  }

  std::vector<BackupDamage> verify(const Manifest& manifest) {
    VerifyBytesJob job(store, manifest);
    value(run_to_end(job));
    return job.damage();
  }

  MemoryFileSystem disk;
  test::DatabaseBuilder builder;
  SeededRandom random;
  test::ManualClock clock;
  DirectoryStore store{disk, "/repository", random};
  std::unique_ptr<Repository> repository;
  BackupProgress progress;
  std::uint64_t resumed = 0;
};

/// What the restored database shows is what the source shows below the restored end.
inline void expect_restored(BackupCase& backup, const Manifest& manifest, const Path& directory) {
  EXPECT_THAT(backup.verify(manifest), ::testing::IsEmpty());
  ok(backup.restore(manifest, directory));
  const auto end = manifest.positions.end;
  EXPECT_EQ(checkpoint_in(backup.disk, directory / "truncate.chk"), end.value());
  const auto restored = backup.open(directory);
  EXPECT_EQ(restored->transaction_log().end(), end);
  EXPECT_EQ(backup.digest(*restored, end), backup.digest(backup.builder.database(), end));
}

}  // namespace verger::backup
