// Restores: of what is there, interrupted at every place, refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine_backup/backup_case.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

/// Two databases, and a backup of the first: /db holds the other one.
class RestoreOver : public ::testing::Test {
 protected:
  RestoreOver() {
    backup.fill(60);
    backup.builder.close();
    manifest = value(backup.back_up(backup.options(SourceState::kStopped)));
    BackupCase other({.seed = 9});
    other.fill(90);
    other.builder.close();
    ok(backup.disk.import_tree(other.disk, "/db", "/other"));
    old_digest = digest_of(other, "/db");
    new_digest = digest_of(backup, "/db");
  }

  static std::string digest_of(BackupCase& at, const Path& directory) {
    const auto database = at.open(directory);
    return at.digest(*database, database->transaction_log().end());
  }

  /// What a node that is started on the directory would show; "" where it refuses to start.
  std::string shown(const Path& directory) {
    auto opened = streams::Database::open(
        backup.disk, directory,
        test::database_options(backup.builder.options(), log::Access::kReadOnly),
        /*commit_all=*/true, backup.clock, backup.random, null_log());
    return opened ? backup.digest(**opened, (*opened)->transaction_log().end()) : std::string();
  }

  BackupCase backup;
  Manifest manifest;
  std::string old_digest;
  std::string new_digest;
};

TEST_F(RestoreOver, ReplacesWhatWasThere) {
  ok(backup.restore(manifest, "/other"));
  EXPECT_EQ(digest_of(backup, "/other"), new_digest);
  EXPECT_FALSE(value(backup.disk.exists("/other/verger-restore")));
  EXPECT_FALSE(value(backup.disk.exists("/other/index/verger-restore")));
}

TEST_F(RestoreOver, KeepsWhatWasThereOnRequest) {
  const auto before = tree_of(backup.disk, "/other");
  ok(backup.restore(manifest, "/other", /*keep_old=*/true));
  auto kept = tree_of(backup.disk, Path("/other") / ("old-before-" + manifest.id));
  for (auto& [path, content] :
       tree_of(backup.disk, Path("/other/index") / ("old-before-" + manifest.id))) {
    kept["index/" + path] = content;
  }
  for (const auto& [path, content] : before) {
    if (path != "verger.lock") {
      EXPECT_EQ(kept[path], content) << path;
    }
  }
  EXPECT_EQ(digest_of(backup, "/other"), new_digest);
}

TEST_F(RestoreOver, NeverShowsAMixtureAndIsResumedWhereverThePowerGoes) {
  std::uint64_t refused = 0;
  for (const bool keep_old : {false, true}) {
    for (std::uint64_t nth = 0;; ++nth) {
      SCOPED_TRACE(fmt::format("{} {}", keep_old, nth));
      const auto disk = backup.disk.clone();
      disk->reset_count();
      disk->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.number != nth) {
          return std::nullopt;
        }
        disk->cut_power(nth);
        return Error{Errc::kIo, "the power went"};
      });
      DirectoryStore store(*disk, "/repository", backup.random);
      RestoreOptions how;
      how.directory = "/other";
      how.keep_old = keep_old;
      const auto restore = [&] {
        RestoreJob job(*disk, store, manifest, how, backup.clock, backup.random, null_log());
        return run_to_end(job, {}, {.units = 65536});
      };
      const bool done = restore().has_value();
      disk->set_fault_hook({});
      const auto open = [&](log::Access access) {
        return streams::Database::open(
            *disk, "/other", test::database_options(backup.builder.options(), access),
            /*commit_all=*/true, backup.clock, backup.random, null_log());
      };
      if (!done) {
        const auto now = open(log::Access::kReadOnly);
        if (now) {
          const auto& log = (*now)->transaction_log();
          EXPECT_THAT((std::vector<std::string>{old_digest, new_digest}),
                      IsSupersetOf({backup.digest(**now, log.end())}));
        } else {
          ++refused;
        }
        ok(restore());
      }
      const auto database = value(open(log::Access::kWrite));
      EXPECT_EQ(backup.digest(*database, database->transaction_log().end()), new_digest);
      if (keep_old) {
        EXPECT_TRUE(value(
            disk->exists(Path("/other") / ("old-before-" + manifest.id) / "chunk-000000.000000")));
      }
      EXPECT_FALSE(value(disk->exists("/other/verger-restore")));
      if (done) {
        break;  // nth is past the last operation
      }
    }
  }
  EXPECT_GT(refused, 10U);
}

TEST_F(RestoreOver, DoesNotCopyAgainWhatAnInterruptedOneHas) {
  RestoreOptions how;
  how.directory = "/other";
  {
    RestoreJob job(backup.disk, backup.store, manifest, how, backup.clock, backup.random,
                   null_log());
    while (job.progress().done < manifest.stored_bytes() / 2) {
      value(job.step({.units = 1}));
    }
  }
  EXPECT_EQ(shown("/other"), old_digest);
  ok(backup.restore(manifest, "/other"));
  EXPECT_GT(backup.resumed, manifest.stored_bytes() / 3);
  EXPECT_EQ(digest_of(backup, "/other"), new_digest);
}

TEST_F(RestoreOver, ChangesNothingWhereTheBackupIsDamaged) {
  const auto* const chunk = manifest.find("chunk-000001.000000");
  ASSERT_NE(chunk, nullptr);
  auto content = value(read_file(backup.disk, backup.store.blob_path(chunk->sha256)));
  content[5000] ^= std::byte{1};
  ok(write_file_durably(backup.disk, backup.store.blob_path(chunk->sha256), content));
  const auto outcome = backup.restore(manifest, "/other");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kCorruption);
  EXPECT_THAT(outcome.error().message, HasSubstr("chunk-000001.000000"));
  EXPECT_EQ(shown("/other"), old_digest);
  ok(backup.disk.remove(backup.store.blob_path(chunk->sha256)));
  EXPECT_EQ(backup.restore(manifest, "/other").error().code, Errc::kNotFound);
  EXPECT_EQ(shown("/other"), old_digest);
}

TEST_F(RestoreOver, RefusesADatabaseThatIsOpen) {
  const auto running = backup.open("/other");
  const auto outcome = backup.restore(manifest, "/other");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kRefused);
  EXPECT_THAT(outcome.error().message, HasSubstr("verger.lock"));
}

TEST_F(RestoreOver, NeedsSpaceBesideTheOldFiles) {
  backup.disk.set_free_space(10'000);
  const auto outcome = backup.restore(manifest, "/other");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kNoSpace);
  EXPECT_EQ(shown("/other"), old_digest);
}

TEST_F(RestoreOver, OfAnotherBackupWaitsUntilFilesAreWhole) {
  auto options = backup.options(SourceState::kStopped);
  const auto second = value(backup.back_up(options));
  // Interrupted while it copies: another one may begin.
  RestoreOptions how;
  how.directory = "/other";
  {
    RestoreJob job(backup.disk, backup.store, manifest, how, backup.clock, backup.random,
                   null_log());
    value(job.step({.units = 1}));
    value(job.step({.units = 1}));
  }
  ok(backup.restore(second, "/other"));
  // Interrupted while it replaces files: only the same one.
  backup.disk.set_fault_hook([](const DiskOperation& operation) -> std::optional<Error> {
    return operation.kind == "rename" && operation.path.filename() == "chunk-000000.000000" &&
                   operation.path.native().contains("verger-restore/new")
               ? std::optional(Error{Errc::kIo, "the disk is gone"})
               : std::nullopt;
  });
  EXPECT_EQ(backup.restore(manifest, "/other").error().code, Errc::kIo);
  backup.disk.set_fault_hook({});
  const auto other = backup.restore(second, "/other");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kRefused);
  EXPECT_THAT(other.error().message, HasSubstr(manifest.id));
  EXPECT_EQ(shown("/other"), "");
  ok(backup.restore(manifest, "/other"));
  EXPECT_EQ(digest_of(backup, "/other"), new_digest);
}

TEST_F(RestoreOver, PutsTheIndexWhereItBelongs) {
  RestoreOptions how;
  how.directory = "/target";
  how.index_directory = "/elsewhere/index";
  {
    RestoreJob job(backup.disk, backup.store, manifest, how, backup.clock, backup.random,
                   null_log());
    ok(run_to_end(job));
  }
  EXPECT_TRUE(value(backup.disk.exists("/elsewhere/index/indexmap")));
  EXPECT_FALSE(value(backup.disk.exists("/target/index")));
  auto options = test::database_options(backup.builder.options(), log::Access::kWrite);
  options.index_directory = how.index_directory;
  const auto database = value(streams::Database::open(backup.disk, "/target", options, true,
                                                      backup.clock, backup.random, null_log()));
  EXPECT_EQ(backup.digest(*database, database->transaction_log().end()), new_digest);
}

}  // namespace
}  // namespace verger::backup
