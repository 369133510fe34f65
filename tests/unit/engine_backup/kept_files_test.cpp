// The way back from a restore: the files of before, put back or discarded, at any place of a power
// cut.
#include "engine/backup/kept_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/forwarding_file_system.h"
#include "tests/unit/engine_backup/backup_case.h"

namespace verger::backup {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Budget kLarge{.units = 65536};

/// /other has a database of its own; `manifest` is a backup of /db.
class KeptFiles : public ::testing::Test {
 protected:
  using Tree = std::map<std::string, Bytes>;

  KeptFiles() {
    backup.fill(40);
    backup.builder.close();
    manifest = value(backup.back_up(backup.options(SourceState::kStopped)));
    BackupCase other({.seed = 9});
    other.fill(60);
    other.builder.close();
    ok(backup.disk.import_tree(other.disk, "/db", "/other"));
    before = tree_at(backup.disk);
    old_digest = *digest_at(backup.disk);
    new_digest = *digest_at(backup.disk, "/db");
  }

  /// Without the lock file, which our programs leave.
  static Tree tree_at(FileSystem& disk, const Path& directory = "/other") {
    auto tree = tree_of(disk, directory);
    tree.erase("verger.lock");
    return tree;
  }

  /// What a node that is started would show; nullopt where it refuses to start.
  std::optional<std::string> digest_at(FileSystem& disk, const Path& directory = "/other") {
    auto opened = streams::Database::open(
        disk, directory, test::database_options(backup.builder.options(), log::Access::kReadOnly),
        /*commit_all=*/true, backup.clock, backup.random, null_log());
    return opened ? std::optional(backup.digest(**opened, (*opened)->transaction_log().end()))
                  : std::nullopt;
  }

  Result<void> restore_on(FileSystem& disk, bool keep_old) {
    DirectoryStore store(disk, "/repository", backup.random);
    RestoreOptions how;
    how.directory = "/other";
    how.keep_old = keep_old;
    RestoreJob job(disk, store, manifest, how, backup.clock, backup.random, null_log());
    return run_to_end(job, {}, kLarge);
  }
  Result<bool> revert_on(FileSystem& disk) {
    return revert_restore(disk, {.directory = "/other", .index_directory = {}}, manifest.id);
  }
  Result<std::uint64_t> discard_on(FileSystem& disk) {
    return discard_kept_files(disk, {.directory = "/other", .index_directory = {}}, manifest.id);
  }

  /// Calls `work` on copies of the disk, with the power cut at each operation in turn, then `check`
  /// on what is left; until `work` needs fewer operations than the number of the cut.
  void at_each_cut(const std::function<bool(MemoryFileSystem&)>& work,
                   const std::function<void(MemoryFileSystem&)>& check) const {
    for (std::uint64_t nth = 0;; ++nth) {
      SCOPED_TRACE(nth);
      const auto disk = backup.disk.clone();
      disk->reset_count();
      disk->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.number != nth) {
          return std::nullopt;
        }
        disk->cut_power(nth);
        return Error{Errc::kIo, "the power went"};
      });
      const bool done = work(*disk);
      disk->set_fault_hook({});
      check(*disk);
      if (done || ::testing::Test::HasFailure()) {
        return;
      }
    }
  }

  BackupCase backup;
  Manifest manifest;
  Tree before;
  std::string old_digest;
  std::string new_digest;
};

TEST_F(KeptFiles, AreRestoredByteForByte) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  EXPECT_EQ(digest_at(backup.disk), new_digest);
  EXPECT_THAT(value(generations_with_kept_files(backup.disk, "/other")), ElementsAre(manifest.id));
  EXPECT_TRUE(value(revert_on(backup.disk)));
  EXPECT_EQ(tree_at(backup.disk), before);
  EXPECT_THAT(value(generations_with_kept_files(backup.disk, "/other")), IsEmpty());
  EXPECT_FALSE(value(revert_on(backup.disk))) << "nothing is left to put back";
  EXPECT_EQ(tree_at(backup.disk), before);
}

TEST_F(KeptFiles, AreRestoredOverWhatWasWrittenSince) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  {
    const auto started = backup.open("/other");
  }
  ok(write_file_durably(backup.disk, "/other/chunk-000099.000000", Bytes(100)));
  ok(write_file_durably(backup.disk, "/other/index/indexmap", Bytes(7)));
  EXPECT_TRUE(value(revert_on(backup.disk)));
  EXPECT_EQ(tree_at(backup.disk), before);
}

TEST_F(KeptFiles, OfAnIndexElsewhereComeBackThere) {
  const RestoredDatabase database{.directory = "/target", .index_directory = "/elsewhere/index"};
  const auto copy = backup.disk.clone();
  ok(backup.disk.import_tree(*copy, "/other", "/target"));
  ok(backup.disk.import_tree(*copy, "/other/index", "/elsewhere/index"));
  const auto target = tree_at(backup.disk, "/target");
  const auto index = tree_at(backup.disk, "/elsewhere/index");
  RestoreOptions how;
  how.directory = database.directory;
  how.index_directory = database.index_directory;
  how.keep_old = true;
  {
    RestoreJob job(backup.disk, backup.store, manifest, how, backup.clock, backup.random,
                   null_log());
    ok(run_to_end(job, {}, kLarge));
  }
  EXPECT_NE(tree_at(backup.disk, "/elsewhere/index"), index);
  EXPECT_TRUE(value(revert_restore(backup.disk, database, manifest.id)));
  EXPECT_EQ(tree_at(backup.disk, "/target"), target);
  EXPECT_EQ(tree_at(backup.disk, "/elsewhere/index"), index);
}

TEST_F(KeptFiles, OfAnEmptyDirectoryAreNone) {
  RestoreOptions how;
  how.directory = "/new";
  how.keep_old = true;
  {
    RestoreJob job(backup.disk, backup.store, manifest, how, backup.clock, backup.random,
                   null_log());
    ok(run_to_end(job, {}, kLarge));
  }
  EXPECT_EQ(digest_at(backup.disk, "/new"), new_digest);
  EXPECT_TRUE(value(
      revert_restore(backup.disk, {.directory = "/new", .index_directory = {}}, manifest.id)));
  EXPECT_THAT(tree_at(backup.disk, "/new"), IsEmpty());
  EXPECT_FALSE(value(
      revert_restore(backup.disk, {.directory = "/nowhere", .index_directory = {}}, manifest.id)));
}

TEST_F(KeptFiles, AreRestoredWhereverThePowerFailsOnTheWay) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  std::uint64_t refused = 0;
  at_each_cut([&](MemoryFileSystem& disk) { return revert_on(disk).has_value(); },
              [&](MemoryFileSystem& disk) {
                if (const auto shown = digest_at(disk)) {
                  EXPECT_THAT(*shown, AnyOf(Eq(old_digest), Eq(new_digest)));
                } else {
                  ++refused;
                  EXPECT_FALSE(value(find_unfinished_restore(disk, "/other"))->database_is_whole);
                }
                static_cast<void>(value(revert_on(disk)));
                EXPECT_EQ(tree_at(disk), before);
              });
  EXPECT_GT(refused, 10U);
}

TEST_F(KeptFiles, ComeBackFromARestoreThatWasInterruptedAnywhere) {
  for (const bool keep_old : {false, true}) {
    at_each_cut([&](MemoryFileSystem& disk) { return restore_on(disk, keep_old).has_value(); },
                [&](MemoryFileSystem& disk) {
                  const auto reverted = revert_on(disk);
                  if (reverted && *reverted) {
                    EXPECT_EQ(tree_at(disk), before);
                  } else if (reverted) {
                    // It had not begun, or has ended and kept nothing.
                    EXPECT_THAT(*digest_at(disk), AnyOf(Eq(old_digest), Eq(new_digest)));
                  } else {
                    EXPECT_FALSE(keep_old);
                    EXPECT_EQ(reverted.error().code, Errc::kRefused);
                    EXPECT_THAT(reverted.error().message, HasSubstr("finish it"));
                    ok(restore_on(disk, keep_old));
                  }
                });
  }
}

TEST_F(KeptFiles, AreNoLongerChangedOnceAServerCanStartOnThem) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  backup.disk.set_fault_hook([](const DiskOperation& operation) -> std::optional<Error> {
    return operation.kind == "remove" ? std::optional(Error{Errc::kIo, "the disk is gone"})
                                      : std::nullopt;
  });
  // Fails at the first file that is removed, and at the last: what is left of the restore's own.
  ASSERT_FALSE(revert_on(backup.disk));
  int removals = 0;
  backup.disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    const bool own = operation.path.native().contains("verger-restore");
    return operation.kind == "remove" && own && ++removals == 1
               ? std::optional(Error{Errc::kIo, "the disk is gone"})
               : std::nullopt;
  });
  ASSERT_FALSE(revert_on(backup.disk));
  backup.disk.set_fault_hook({});
  ok(write_file_durably(backup.disk, "/other/chunk-000098.000000", Bytes(100)));
  EXPECT_TRUE(value(revert_on(backup.disk)));
  EXPECT_TRUE(value(backup.disk.exists("/other/chunk-000098.000000")));
}

TEST_F(KeptFiles, AreDiscardedWhereverThePowerGoes) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  at_each_cut([&](MemoryFileSystem& disk) { return discard_on(disk).has_value(); },
              [&](MemoryFileSystem& disk) {
                EXPECT_EQ(digest_at(disk), new_digest);
                const auto copy = disk.clone();
                const auto reverted = revert_on(*copy);
                if (reverted && *reverted) {
                  EXPECT_EQ(tree_at(*copy), before);
                } else if (!reverted) {
                  EXPECT_EQ(reverted.error().code, Errc::kCorruption);
                  EXPECT_EQ(digest_at(*copy), new_digest);
                }
                static_cast<void>(value(discard_on(disk)));
                EXPECT_THAT(value(generations_with_kept_files(disk, "/other")), IsEmpty());
                for (const auto& [path, content] : tree_at(disk)) {
                  EXPECT_THAT(path, Not(HasSubstr("old-before")));
                }
              });
  EXPECT_GT(value(discard_on(backup.disk)), 10'000U);
  EXPECT_EQ(value(discard_on(backup.disk)), 0U);
}

TEST_F(KeptFiles, AreNotRestoredInPart) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  ok(backup.disk.remove(Path("/other") / ("old-before-" + manifest.id) / "chunk-000001.000000"));
  const auto reverted = revert_on(backup.disk);
  ASSERT_FALSE(reverted);
  EXPECT_EQ(reverted.error().code, Errc::kCorruption);
  EXPECT_THAT(reverted.error().message, HasSubstr("chunk-000001.000000: is missing"));
  EXPECT_EQ(digest_at(backup.disk), new_digest);
}

TEST_F(KeptFiles, AreNotReplacedByASecondRestoreOfTheSameBackup) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  const auto again = restore_on(backup.disk, /*keep_old=*/true);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kRefused);
  EXPECT_THAT(again.error().message, HasSubstr("--discard-old " + manifest.id));
  ok(restore_on(backup.disk, /*keep_old=*/false));
  EXPECT_TRUE(value(revert_on(backup.disk)));
  EXPECT_EQ(tree_at(backup.disk), before) << "those of before the first one";
}

TEST_F(KeptFiles, OnTheirWayBackAllowNoRestore) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  backup.disk.set_fault_hook([](const DiskOperation& operation) -> std::optional<Error> {
    return operation.kind == "rename" && operation.path.filename() == "chunk-000001.000000"
               ? std::optional(Error{Errc::kIo, "the disk is gone"})
               : std::nullopt;
  });
  ASSERT_FALSE(revert_on(backup.disk));
  backup.disk.set_fault_hook({});
  const auto unfinished = value(find_unfinished_restore(backup.disk, "/other"));
  ASSERT_TRUE(unfinished);
  EXPECT_TRUE(unfinished->reverting);
  EXPECT_FALSE(unfinished->database_is_whole);
  const auto restored = restore_on(backup.disk, /*keep_old=*/false);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Errc::kRefused);
  EXPECT_EQ(discard_on(backup.disk).error().code, Errc::kRefused);
  EXPECT_EQ(revert_restore(backup.disk, {.directory = "/other", .index_directory = {}},
                           "20200101t000000z-00000000")
                .error()
                .code,
            Errc::kRefused)
      << "another generation's";
  EXPECT_TRUE(value(revert_on(backup.disk)));
  EXPECT_EQ(tree_at(backup.disk), before);
}

TEST_F(KeptFiles, AreNotRestoredUnderAnOpenDatabase) {
  ok(restore_on(backup.disk, /*keep_old=*/true));
  const auto running = backup.open("/other");
  const auto reverted = revert_on(backup.disk);
  ASSERT_FALSE(reverted);
  EXPECT_EQ(reverted.error().code, Errc::kRefused);
  EXPECT_TRUE(value(discard_on(backup.disk)) > 0) << "which touches nothing that is open";
}

/// The index on a volume of its own.
class TwoVolumes final : public ForwardingFileSystem {
 public:
  TwoVolumes(FileSystem& disk, std::uint64_t for_database, std::uint64_t for_index)
      : ForwardingFileSystem(disk), for_database_(for_database), for_index_(for_index) {}
  Result<DiskSpace> space(const Path& path) override {
    const bool index = path.native().starts_with("/elsewhere");
    return DiskSpace{.total = index ? 2ULL << 40U : 1ULL << 40U,
                     .available = index ? for_index_ : for_database_};
  }

 private:
  std::uint64_t for_database_;
  std::uint64_t for_index_;
};

TEST_F(KeptFiles, TakeNoSpaceButTheNewOnesDoOnEachVolume) {
  constexpr std::uint64_t kEnough = 1ULL << 30U;
  ok(backup.disk.make_directories("/elsewhere"));
  const auto tried = [&](std::uint64_t for_database, std::uint64_t for_index) {
    TwoVolumes disk(backup.disk, for_database, for_index);
    RestoreOptions how;
    how.directory = "/new";
    how.index_directory = "/elsewhere/index";
    RestoreJob job(disk, backup.store, manifest, how, backup.clock, backup.random, null_log());
    return run_to_end(job, {}, kLarge);
  };
  const auto small_index = tried(kEnough, 1000);
  ASSERT_FALSE(small_index);
  EXPECT_EQ(small_index.error().code, Errc::kNoSpace);
  EXPECT_THAT(small_index.error().message, HasSubstr("/elsewhere/index: "));
  const auto small_database = tried(1000, kEnough);
  ASSERT_FALSE(small_database);
  EXPECT_THAT(small_database.error().message, HasSubstr("/new: "));
  ok(tried(kEnough, kEnough));
}

}  // namespace
}  // namespace verger::backup
