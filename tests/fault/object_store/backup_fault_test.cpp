// A request of a backup to object storage fails, each in turn and in each way; or the server is
// away from there on. What is listed as a backup is one, and the next one succeeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/backup/backup_job.h"
#include "engine/backup/restore_job.h"
#include "engine/backup/verify_job.h"
#include "engine/base/memory_file_system.h"
#include "engine/object_store/s3_store.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/object_store/s3_server.h"
#include "tests/support/results.h"

namespace verger::object_store {
namespace {

using test::S3Call;
using test::S3Fault;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = S3Fault::Kind;

/// Requests between two that fail: all would take minutes.
constexpr int kStride = 3;

/// A small database whose chunks are of several parts.
MemoryFileSystem& database() {
  static MemoryFileSystem disk;
  static const bool made = [] {
    test::DatabaseBuilder builder(disk, "/db", {.chunk_size = 8192, .max_mem_table_size = 20});
    for (int i = 0; i < 60; ++i) {
      builder.write("stream-" + std::to_string(i % 5), 1, 200);
    }
    builder.close();
    return true;
  }();
  static_cast<void>(made);
  return disk;
}

Result<void> run_to_end(Job& job) {
  for (;;) {
    VERGER_TRY(const auto outcome, job.step({}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
  }
}

class BackupRun {
 public:
  Result<backup::Manifest> back_up() {
    VERGER_TRY(auto repository,
               backup::Repository::open(store_, backup::Repository::Create::kIfMissing));
    backup::BackupOptions options;
    options.source.directory = "/db";
    options.node.node = "n1";
    options.session_interval = 4096;
    VERGER_TRY(options.parent, backup::find_parent(repository, "n1"));
    backup::BackupJob job(database(), repository, options, clock_, random_, null_log());
    auto done = run_to_end(job);
    clock_.advance_seconds(60);
    VERGER_RETURN_IF_ERROR(std::move(done));
    return job.manifest();
  }
  std::vector<backup::GenerationEntry> generations() {
    const auto repository =
        backup::Repository::open(store_, backup::Repository::Create::kIfMissing);
    return value(value(repository).generations());
  }
  void expect_sound(const backup::Manifest& manifest) {
    backup::VerifyBytesJob verify(store_, manifest);
    ok(run_to_end(verify));
    EXPECT_THAT(verify.damage(), IsEmpty());
    EXPECT_THAT(generations(), SizeIs(1));
  }
  void restore(const backup::Manifest& manifest, FileSystem& disk) {
    backup::RestoreOptions options;
    options.directory = "/restored";
    backup::RestoreJob job(disk, store_, manifest, options, clock_, random_, null_log());
    ok(run_to_end(job));
  }
  /// Once all backups are done: nothing stays of those that failed.
  void expect_no_leftovers() {
    auto repository = value(backup::Repository::open(store_, backup::Repository::Create::kNo));
    clock_.advance_seconds(7200);
    value(repository.sweep(clock_.now(), clock_.now()));
    EXPECT_EQ(server.unfinished_uploads(), 0U);
    for (const auto& [key, content] : server.objects()) {
      EXPECT_FALSE(key.starts_with("orders/tmp/") || key.starts_with("orders/sessions/")) << key;
    }
  }

  test::S3Server server;

 private:
  test::ManualClock clock_;
  SeededRandom random_{7};
  S3Store store_{{.bucket = "bucket",
                  .prefix = "orders/",
                  .endpoint = server.url(),
                  .path_style = true,
                  .credentials = {.access_key = "key-id", .secret_key = "secret"},
                  .part_size = 3000,
                  .copy_size = 5000},
                 random_,
                 null_log(),
                 [](std::chrono::milliseconds) {}};
};

class BackupFault : public ::testing::TestWithParam<Kind> {};

TEST_P(BackupFault, OfOneRequestIsNoFaultOfTheBackup) {
  int failed = 0;
  for (int which = 0;; which += kStride) {
    SCOPED_TRACE(which);
    BackupRun run;
    int call = 0;
    run.server.on_call([&](const S3Call&) {
      return call++ == which ? std::optional(S3Fault{.kind = GetParam()}) : std::nullopt;
    });
    const auto manifest = run.back_up();
    ASSERT_TRUE(manifest) << manifest.error().message;
    if (call <= which) {
      break;
    }
    ++failed;
    run.expect_sound(*manifest);
    run.expect_no_leftovers();
  }
  EXPECT_GT(failed, 10);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BackupFault,
                         ::testing::Values(Kind::kStatus, Kind::kCut, Kind::kLostAnswer,
                                           Kind::kCutBody));

TEST(ServerAway, FromAnyRequestOnIsContinuedByTheNextBackup) {
  int failed = 0;
  for (int which = 0;; which += kStride) {
    SCOPED_TRACE(which);
    BackupRun run;
    int call = 0;
    run.server.on_call([&](const S3Call&) {
      return call++ >= which ? std::optional(S3Fault{.kind = Kind::kCut}) : std::nullopt;
    });
    const auto away = run.back_up();
    run.server.on_call({});
    if (away) {
      EXPECT_LE(call, which);
      break;
    }
    ++failed;
    EXPECT_EQ(away.error().code, Errc::kUnavailable) << away.error().message;
    // The manifest is the last that is written of a backup: it may be there without its answer.
    for (const auto& entry : run.generations()) {
      ASSERT_TRUE(entry.manifest) << entry.damage;
      run.expect_sound(*entry.manifest);
    }
    const auto next = run.back_up();
    ASSERT_TRUE(next) << next.error().message;
    MemoryFileSystem disk;
    run.restore(*next, disk);
    for (const auto& file : next->files) {
      if (file.kind == backup::FileKind::kChunk) {
        EXPECT_TRUE(same_bytes(value(read_file(disk, "/restored/" + file.path)),
                               value(read_file(database(), "/db/" + file.path))));
      }
    }
    run.expect_no_leftovers();
  }
  EXPECT_GT(failed, 10);
}

}  // namespace
}  // namespace verger::object_store
