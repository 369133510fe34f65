// Index tables of a restored database: the backup's, or made from the log, whichever is faster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/backup/detail/index_choice.h"
#include "tests/unit/engine_backup/backup_case.h"
#include "tests/unit/engine_backup/sealed_case.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;

class RestoredIndex : public ::testing::Test {
 protected:
  RestoredIndex() {
    backup.fill(60);
    backup.builder.close();
    manifest = value(backup.back_up(backup.options(SourceState::kStopped)));
    const auto source = backup.open("/db");
    digest = backup.digest(*source, source->transaction_log().end());
  }
  RestoreJob job_of(IndexSource source, Clock& clock) {
    RestoreOptions how;
    how.directory = "/target";
    how.index_from = source;
    return {backup.disk, backup.store, manifest, how, clock, backup.random, null_log()};
  }
  /// Tables of the backup that are in place.
  int backed_up_tables() {
    int found = 0;
    for (const auto& file : manifest.files) {
      found +=
          file.kind == FileKind::kTable && value(backup.disk.exists(Path("/target") / file.path))
              ? 1
              : 0;
    }
    return found;
  }
  void expect_whole() {
    {
      // What is read for writing would be rebuilt if it were missing.
      const auto shown = value(streams::Database::open(
          backup.disk, "/target",
          test::database_options(backup.builder.options(), log::Access::kReadOnly),
          /*commit_all=*/true, backup.clock, backup.random, null_log()));
      EXPECT_FALSE(shown->stream_index().tables().empty());
    }
    const auto restored = backup.open("/target");
    EXPECT_EQ(backup.digest(*restored, restored->transaction_log().end()), digest);
    EXPECT_FALSE(value(backup.disk.exists("/target/verger-restore")));
    EXPECT_FALSE(value(backup.disk.exists("/target/index/verger-restore")));
  }

  BackupCase backup;
  Manifest manifest;
  std::string digest;
};

/// Each look at it takes as long.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(std::chrono::seconds each) : each_(each) {}
  Ticks now() override { return test::kTestTime; }
  Monotonic monotonic() override { return now_ += each_; }

 private:
  std::chrono::seconds each_;
  Monotonic now_{};
};

TEST_F(RestoredIndex, IsMadeFromTheLogOnRequest) {
  {
    auto job = job_of(IndexSource::kLog, backup.clock);
    ok(run_to_end(job));
    EXPECT_TRUE(job.rebuilds_index());
  }
  EXPECT_EQ(backed_up_tables(), 0);
  expect_whole();
}

TEST_F(RestoredIndex, IsTheBackupsWhereThatTakesNoTime) {
  {
    auto job = job_of(IndexSource::kFaster, backup.clock);
    ok(run_to_end(job));
    EXPECT_FALSE(job.rebuilds_index());
    EXPECT_THAT(job.index_choice(), HasSubstr("restored"));
  }
  EXPECT_GT(backed_up_tables(), 0);
  expect_whole();
}

TEST_F(RestoredIndex, IsMadeFromTheLogWhereCopyingIsSlow) {
  {
    auto job = job_of(IndexSource::kFaster, backup.clock);
    ok(run_to_end(job, [this] { backup.clock.advance_seconds(3'600); }, {.units = 1}));
    EXPECT_TRUE(job.rebuilds_index()) << job.index_choice();
    EXPECT_THAT(job.index_choice(), HasSubstr("made from the log: restoring it takes about"));
  }
  EXPECT_EQ(backed_up_tables(), 0);
  expect_whole();
}

TEST_F(RestoredIndex, IsChosenByWhatBothTake) {
  {
    auto job = job_of(IndexSource::kLog, backup.clock);
    while (job.progress().phase != "switch") {
      value(job.step({}));
    }
    const detail::RestorePlace place(backup.disk, "/target", "/target/index");
    const auto choose = [&](std::uint64_t seconds) {
      // Making the tables takes 20 s.
      TickingClock clock(std::chrono::seconds(20));
      return value(detail::choose_index(backup.disk, place, manifest,
                                        {.bytes = 1'000, .seconds = 1'000, .left = seconds}, clock,
                                        backup.random));
    };
    EXPECT_FALSE(choose(9).from_log);
    EXPECT_FALSE(choose(25).from_log);
    EXPECT_EQ(choose(25).text,
              "restored: restoring it takes about 25 s, making it from the log 20 s");
    EXPECT_TRUE(choose(40).from_log);
    ok(run_to_end(job));
  }
  expect_whole();
}

TEST_F(RestoredIndex, IsChosenByWhatTheRepositoryHasToTransfer) {
  const auto sealed = sealed_store(backup.disk, backup.random, Compression::kZstd, std::nullopt);
  auto repository = value(Repository::open(*sealed, Repository::Create::kIfMissing));
  BackupJob copy(backup.disk, repository, backup.options(SourceState::kStopped), backup.clock,
                 backup.random, null_log());
  ok(run_to_end(copy));
  // Of tables and of the rest: as files, and as they are stored.
  std::array<std::uint64_t, 2> bytes{};
  std::array<std::uint64_t, 2> stored{};
  for (const auto& file : copy.manifest().files) {
    const std::size_t which = detail::is_index_table(file) ? 0 : 1;
    bytes.at(which) += file.size;
    stored.at(which) += value(sealed->open_blob(file.sha256))->stored_size();
  }
  const auto part = [](const auto& of) {
    return static_cast<double>(of[0]) / static_cast<double>(of[1]);
  };
  const auto factor = part(stored) / part(bytes);
  ASSERT_TRUE(factor > 1.5 || factor < 1 / 1.5) << factor;

  RestoreOptions how;
  how.directory = "/target";
  how.index_from = IndexSource::kFaster;
  RestoreJob job(backup.disk, *sealed, copy.manifest(), how, backup.clock, backup.random,
                 null_log());
  int seconds = 0;
  while (job.index_choice().empty()) {
    value(job.step({.units = 1}));
    backup.clock.advance_seconds(1);
    ++seconds;
  }
  constexpr std::string_view kBefore = "takes about ";
  const auto at = job.index_choice().find(kBefore);
  ASSERT_NE(at, std::string::npos) << job.index_choice();
  EXPECT_NEAR(std::stod(job.index_choice().substr(at + kBefore.size())), seconds * part(stored),
              0.2 * seconds * part(stored));
  ok(run_to_end(job));
}

TEST_F(RestoredIndex, IsWholeWhereverThePowerGoesWhileItIsMade) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    const auto disk = backup.disk.clone();
    DirectoryStore store(*disk, "/repository", backup.random);
    RestoreOptions how;
    how.directory = "/target";
    how.index_from = IndexSource::kLog;
    bool done = false;
    {
      RestoreJob job(*disk, store, manifest, how, backup.clock, backup.random, null_log());
      while (job.progress().phase != "index") {
        value(job.step({.units = 65'536}));
      }
      disk->reset_count();
      disk->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.number != nth) {
          return std::nullopt;
        }
        disk->cut_power(nth);
        return Error{Errc::kIo, "the power went"};
      });
      done = run_to_end(job, {}, {.units = 65'536}).has_value();
      disk->set_fault_hook({});
    }
    // The next one wants another index: what was begun counts.
    how.index_from = IndexSource::kBackup;
    RestoreJob next(*disk, store, manifest, how, backup.clock, backup.random, null_log());
    if (!done) {
      ok(run_to_end(next));
    }
    const auto database = value(streams::Database::open(
        *disk, "/target", test::database_options(backup.builder.options(), log::Access::kReadOnly),
        /*commit_all=*/true, backup.clock, backup.random, null_log()));
    EXPECT_FALSE(database->stream_index().tables().empty());
    EXPECT_EQ(backup.digest(*database, database->transaction_log().end()), digest);
    EXPECT_FALSE(value(disk->exists("/target/verger-restore")));
    if (done) {
      break;
    }
  }
}

}  // namespace
}  // namespace verger::backup
