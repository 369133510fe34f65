// The store in a directory, generations, deletion in two phases.
#include "engine/backup/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine_backup/backup_case.h"

namespace verger::backup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kHour = 3600 * kTicksPerSecond;

class DirectoryStoreTest : public ::testing::Test {
 protected:
  MemoryFileSystem disk;
  SeededRandom random{1};
  DirectoryStore store{disk, "/store", random};
};

TEST_F(DirectoryStoreTest, HasABlobOnceItIsCommittedAndOnTheDisk) {
  const auto content = as_bytes("content");
  const auto digest = sha256(content);
  {
    const auto abandoned = value(store.create_blob());
    ok(abandoned->append(content));
  }
  EXPECT_THAT(value(disk.list("/store/tmp")), IsEmpty());
  EXPECT_EQ(value(store.blob_size(digest)), std::nullopt);
  const auto writer = value(store.create_blob());
  ok(writer->append(content.first(3)));
  ok(writer->append(content.subspan(3)));
  ok(writer->commit(digest));
  disk.cut_power();
  EXPECT_EQ(value(store.blob_size(digest)), content.size());
  Bytes read(content.size());
  ok(value(store.open_blob(digest))->read_exact(0, read));
  EXPECT_TRUE(same_bytes(read, content));
  ASSERT_EQ(value(store.list_blobs()).size(), 1U);
  ok(store.remove_blob(digest));
  ok(store.remove_blob(digest));
  EXPECT_THAT(value(store.list_blobs()), IsEmpty());
  EXPECT_EQ(store.open_blob(digest).error().code, Errc::kNotFound);
}

TEST_F(DirectoryStoreTest, RepairsWhatIsStoredAgain) {
  const auto content = as_bytes("content");
  const auto digest = sha256(content);
  const auto store_it = [&] {
    const auto writer = value(store.create_blob());
    ok(writer->append(content));
    ok(writer->commit(digest));
  };
  store_it();
  ok(write_file_durably(disk, store.blob_path(digest), as_bytes("damaged")));
  store_it();
  EXPECT_EQ(as_text(value(read_file(disk, store.blob_path(digest)))), "content");
}

TEST_F(DirectoryStoreTest, KeepsDocumentsInFolders) {
  EXPECT_THAT(value(store.list("folder")), IsEmpty());
  ok(store.put("folder/b", as_bytes("2")));
  ok(store.put("folder/a", as_bytes("1")));
  ok(store.put("folder/a", as_bytes("3")));
  EXPECT_THAT(value(store.list("folder")), ElementsAre("a", "b"));
  EXPECT_EQ(as_text(value(store.get("folder/a"))), "3");
  ok(store.remove("folder/a"));
  ok(store.remove("folder/a"));
  EXPECT_EQ(store.get("folder/a").error().code, Errc::kNotFound);
}

TEST_F(DirectoryStoreTest, IsARepositoryOnlyWithItsMark) {
  EXPECT_EQ(Repository::open(store, Repository::Create::kNo).error().code, Errc::kNotFound);
  value(Repository::open(store, Repository::Create::kIfMissing));
  value(Repository::open(store, Repository::Create::kNo));
  auto mark = value(store.get("repository"));
  for (std::size_t at = 0; at < mark.size(); ++at) {
    mark[at] ^= std::byte{1};
    ok(store.put("repository", mark));
    EXPECT_FALSE(Repository::open(store, Repository::Create::kIfMissing)) << at;
    mark[at] ^= std::byte{1};
  }
}

TEST_F(DirectoryStoreTest, IsOneRepositoryByItsId) {
  const auto made = value(Repository::open(store, Repository::Create::kIfMissing, random));
  EXPECT_FALSE(made.id().is_zero());
  EXPECT_EQ(value(Repository::open(store, Repository::Create::kNo)).id(), made.id());
  EXPECT_EQ(value(Repository::open(store, Repository::Create::kIfMissing, random)).id(), made.id());
  DirectoryStore other(disk, "/other", random);
  EXPECT_NE(value(Repository::open(other, Repository::Create::kIfMissing, random)).id(), made.id());
}

TEST_F(DirectoryStoreTest, OfBeforeThereWereIdsGetsOneFromTheNextBackup) {
  ok(store.put("repository", as_bytes("verger-backup-repository 1\n")));
  EXPECT_TRUE(value(Repository::open(store, Repository::Create::kNo)).id().is_zero());
  const auto id = value(Repository::open(store, Repository::Create::kIfMissing, random)).id();
  EXPECT_FALSE(id.is_zero());
  EXPECT_EQ(value(Repository::open(store, Repository::Create::kNo)).id(), id);
}

BackupCheck check_at(std::int64_t second, BackupCheck::Kind kind = BackupCheck::Kind::kVerify) {
  return {.kind = kind,
          .at = Ticks(test::kTestTime.value() + second * kTicksPerSecond),
          .by = "verger-db on host",
          .passed = second % 2 == 0,
          .summary = "no damage",
          .duration_ms = second,
          .position = LogPosition(4096),
          .figures = {{"bytes", 12}, {"events", -1}}};
}

TEST(BackupCheckText, ReadsWhatItWritesAndFindsEachFlippedBit) {
  const auto check = check_at(3, BackupCheck::Kind::kDrill);
  auto text = encode_check(check);
  EXPECT_EQ(value(decode_check(as_bytes(text))), check);
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      EXPECT_FALSE(decode_check(as_bytes(text))) << at << " bit " << bit;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
    }
  }
}

class Deletion : public ::testing::Test {
 protected:
  Deletion() {
    backup.fill(60);
    first = back_up(std::nullopt);
    backup.builder.write("more", 5, 3000);
    second = back_up(first);
  }
  Manifest back_up(const std::optional<Manifest>& parent) {
    backup.builder.close();
    auto options = backup.options(SourceState::kStopped);
    options.parent = parent;
    auto manifest = value(backup.back_up(options));
    backup.builder.open();
    return manifest;
  }
  Ticks now() { return backup.clock.now(); }

  BackupCase backup;
  Manifest first;
  Manifest second;
};

TEST_F(Deletion, OfABaseLeavesWhatTheNextOneNeeds) {
  const auto blobs = value(backup.store.list_blobs()).size();
  ok(backup.repository->mark_deleted(first.id, now()));
  EXPECT_EQ(value(backup.repository->generations()).size(), 1U);
  EXPECT_EQ(value(backup.store.list_blobs()).size(), blobs);
  backup.clock.advance_seconds(10);
  const auto swept = value(backup.repository->sweep(now(), now()));
  EXPECT_EQ(swept.generations, 1U);
  EXPECT_GT(swept.blobs, 0U);
  EXPECT_THAT(value(backup.repository->marked()), IsEmpty());
  EXPECT_THAT(backup.verify(second), IsEmpty());
  ok(backup.restore(second, "/restored"));
  EXPECT_THAT(backup.verify(first), testing::Not(IsEmpty()));
}

TEST_F(Deletion, IsUndoneUntilItsContentGoes) {
  ok(backup.repository->mark_deleted(second.id, now()));
  EXPECT_EQ(backup.repository->load(second.id).error().code, Errc::kNotFound);
  // Not marked long enough.
  value(backup.repository->sweep(Ticks(now().value() - kHour), Ticks(now().value() - kHour)));
  ok(backup.repository->undelete(second.id));
  EXPECT_EQ(value(backup.repository->load("latest")), second);
  EXPECT_THAT(backup.verify(second), IsEmpty());
  EXPECT_EQ(backup.repository->undelete(second.id).error().code, Errc::kNotFound);
}

TEST_F(Deletion, TakesTheChecksOfABackupWithItsContent) {
  auto& repository = *backup.repository;
  ok(repository.add_check(first.id, check_at(1)));
  ok(repository.add_check(second.id, check_at(2)));
  ok(repository.mark_deleted(first.id, now()));
  EXPECT_EQ(repository.add_check(first.id, check_at(3)).error().code, Errc::kNotFound);
  value(repository.sweep(Ticks(now().value() - kHour), now()));
  EXPECT_THAT(value(repository.checks(first.id)), ElementsAre(check_at(1)));
  backup.clock.advance_seconds(10);
  value(repository.sweep(now(), now()));
  EXPECT_THAT(value(repository.checks(first.id)), IsEmpty());
  EXPECT_THAT(value(repository.checks(second.id)), ElementsAre(check_at(2)));
  EXPECT_THAT(value(backup.store.list("checks")), testing::SizeIs(1));
}

TEST_F(Deletion, ChecksAreKeptByTimeAndTheNewestOfEachKindAreShown) {
  auto& repository = *backup.repository;
  constexpr auto kDrill = BackupCheck::Kind::kDrill;
  EXPECT_THAT(value(repository.latest_checks()), IsEmpty());
  ok(repository.add_check(first.id, check_at(50, kDrill)));
  for (std::int64_t second = 0; second < 30; ++second) {
    ok(repository.add_check(first.id, check_at(second)));
    ok(repository.add_check(first.id, check_at(second)));  // the same is one
  }
  const auto checks = value(repository.checks(first.id));
  ASSERT_EQ(checks.size(), Repository::kKeptChecks + 1);
  EXPECT_EQ(checks.front(), check_at(10));
  EXPECT_EQ(checks.back(), check_at(50, kDrill));
  const auto latest = value(repository.latest_checks());
  ASSERT_EQ(latest.size(), 1U);
  EXPECT_EQ(latest.at(first.id).verify, check_at(29));
  EXPECT_EQ(latest.at(first.id).drill, check_at(50, kDrill));
  EXPECT_THAT(value(repository.checks(second.id)), IsEmpty());
  EXPECT_EQ(repository.add_check("20240101t000000z-00000000", check_at(1)).error().code,
            Errc::kNotFound);
}

TEST_F(Deletion, ADamagedCheckIsLeftOut) {
  auto& repository = *backup.repository;
  ok(repository.add_check(first.id, check_at(1)));
  ok(repository.add_check(first.id, check_at(2)));
  const auto newest = "checks/" + value(backup.store.list("checks")).back();
  ok(backup.store.put(newest, as_bytes("damaged")));
  EXPECT_THAT(value(repository.checks(first.id)), ElementsAre(check_at(1)));
  EXPECT_EQ(value(repository.latest_checks()).at(first.id).verify, check_at(1));
}

TEST_F(Deletion, WaitsForABackupInProgress) {
  ok(backup.repository->mark_deleted(second.id, now()));
  backup.clock.advance_seconds(10);
  auto options = backup.options(SourceState::kStopped);
  options.parent = first;
  backup.builder.close();
  BackupJob job(backup.disk, *backup.repository, options, backup.clock, backup.random, null_log());
  value(job.step({.units = 1}));
  const auto refused = backup.repository->sweep(now(), Ticks(now().value() - kHour));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("of n1"));
  ok(run_to_end(job));
  EXPECT_EQ(value(backup.repository->sweep(now(), Ticks(now().value() - kHour))).generations, 1U);
  EXPECT_THAT(backup.verify(job.manifest()), IsEmpty());
}

TEST_F(Deletion, GivesUpABackupThatWasKilled) {
  auto options = backup.options(SourceState::kStopped);
  backup.builder.close();
  BackupJob job(backup.disk, *backup.repository, options, backup.clock, backup.random, null_log());
  value(job.step({.units = 1}));
  ok(backup.repository->mark_deleted(second.id, now()));
  backup.clock.advance_seconds(7200);
  value(backup.repository->sweep(now(), Ticks(now().value() - kHour)));
  // It was alive after all: what it found in the store may be gone.
  const auto outcome = run_to_end(job);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kConflict);
  EXPECT_THAT(backup.verify(first), IsEmpty());
}

TEST_F(Deletion, DoesNotWaitForABackupThatFailed) {
  auto options = backup.options(SourceState::kStopped);
  backup.builder.close();
  {
    BackupJob job(backup.disk, *backup.repository, options, backup.clock, backup.random,
                  null_log());
    do {
      value(job.step({.units = 1}));
    } while (value(backup.repository->sessions()).front().files.empty());
  }
  ASSERT_EQ(value(backup.repository->sessions()).size(), 1U);
  ok(backup.repository->mark_deleted(second.id, now()));
  backup.clock.advance_seconds(10);
  const Ticks hour_ago(now().value() - kHour);
  EXPECT_EQ(value(backup.repository->sweep(now(), hour_ago)).generations, 1U);
  EXPECT_THAT(value(backup.repository->sessions()), IsEmpty());
}

TEST_F(Deletion, KeepsABackupFromBeginning) {
  ok(backup.store.put("sweeping", as_bytes("x")));
  backup.builder.close();
  const auto refused = backup.back_up(backup.options(SourceState::kStopped));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_THAT(value(backup.repository->sessions()), IsEmpty());
  value(backup.repository->sweep(now(), now()));
  value(backup.back_up(backup.options(SourceState::kStopped)));
}

TEST_F(Deletion, RemovesNothingWhereAManifestIsDamaged) {
  auto text = value(backup.store.get("generations/" + second.id));
  text[200] ^= std::byte{1};
  ok(backup.store.put("generations/" + second.id, text));
  ok(backup.repository->mark_deleted(first.id, now()));
  backup.clock.advance_seconds(10);
  const auto blobs = value(backup.store.list_blobs()).size();
  const auto refused = backup.repository->sweep(now(), now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kCorruption);
  EXPECT_THAT(refused.error().message, HasSubstr(second.id));
  EXPECT_EQ(value(backup.store.list_blobs()).size(), blobs);
  ok(backup.repository->undelete(first.id));
  EXPECT_THAT(backup.verify(first), IsEmpty());
}

TEST_F(Deletion, IsContinuedWhereverThePowerGoes) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    const auto disk = backup.disk.clone();
    DirectoryStore store(*disk, "/repository", backup.random);
    auto repository = value(Repository::open(store, Repository::Create::kNo));
    disk->reset_count();
    disk->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number != nth) {
        return std::nullopt;
      }
      disk->cut_power(nth);
      return Error{Errc::kIo, "the power went"};
    });
    const Ticks later(now().value() + 1);
    const auto delete_first = [&]() -> Result<void> {
      const auto listed = repository.load(first.id);
      if (listed) {
        VERGER_RETURN_IF_ERROR(repository.mark_deleted(first.id, now()));
      }
      VERGER_RETURN_IF_ERROR(repository.sweep(later, later));
      return {};
    };
    const bool done = delete_first().has_value();
    disk->set_fault_hook({});
    VerifyBytesJob job(store, second);
    ok(run_to_end(job));
    EXPECT_THAT(job.damage(), IsEmpty());
    // Either it is there, whole, or it is not listed.
    if (const auto listed = repository.load(first.id)) {
      VerifyBytesJob sound(store, *listed);
      ok(run_to_end(sound));
      EXPECT_THAT(sound.damage(), IsEmpty());
    }
    if (done) {
      break;
    }
    ok(delete_first());
    EXPECT_THAT(value(repository.marked()), IsEmpty());
    EXPECT_EQ(value(repository.generations()).size(), 1U);
  }
}

}  // namespace
}  // namespace verger::backup
