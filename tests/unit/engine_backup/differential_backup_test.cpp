// Differential backups: what is not read again, and what a parent may be.
#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/database/lose_streams.h"
#include "tests/unit/engine_backup/backup_case.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DifferentialBackup, ReadsOnlyWhatIsNew) {
  BackupCase backup;
  backup.fill(300);
  backup.builder.close();
  const auto full = value(backup.back_up(backup.options(SourceState::kStopped)));
  EXPECT_EQ(backup.progress.reused, 0U);
  backup.builder.open();
  backup.builder.write("more", 3, 300);
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  options.parent = full;
  const auto differential = value(backup.back_up(options));
  EXPECT_EQ(differential.parent, full.id);
  EXPECT_EQ(differential.reused_bytes, backup.progress.reused);
  EXPECT_GT(backup.progress.reused, full.stored_bytes() / 2);
  // The last chunk has grown, and the filter changes in place.
  const auto* const filter = differential.find("index/stream-existence/streamExistenceFilter.dat");
  ASSERT_NE(filter, nullptr);
  EXPECT_LE(backup.progress.copied, filter->size + 3 * 16 * 1024U);
  backup.builder.open();
  expect_restored(backup, full, "/first");
  expect_restored(backup, differential, "/second");
}

TEST(DifferentialBackup, OfWhatHasNotChangedReadsNothing) {
  BackupCase backup;
  backup.fill(300);
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  options.parent = value(backup.back_up(options));
  const auto differential = value(backup.back_up(options));
  EXPECT_EQ(backup.progress.copied, 0U);
  EXPECT_EQ(differential.files, options.parent->files);
  backup.builder.open();
  expect_restored(backup, differential, "/restored");
}

TEST(DifferentialBackup, ReadsTheFilterOfALogThatHasChanged) {
  BackupCase backup;
  backup.fill(300);
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  options.parent = value(backup.back_up(options));
  const auto* const filter =
      options.parent->find("index/stream-existence/streamExistenceFilter.dat");
  ASSERT_NE(filter, nullptr);
  // Another log of the same length, whose filter has the same checkpoint.
  Path newest;
  for (const auto& entry : value(backup.disk.list("/db"))) {
    newest = entry.name.starts_with("chunk-") ? Path("/db") / entry.name : newest;
  }
  auto content = value(read_file(backup.disk, newest));
  content[log::kChunkHeaderSize + 300] ^= std::byte{1};
  ok(write_file_durably(backup.disk, newest, content));
  const auto differential = value(backup.back_up(options));
  EXPECT_GT(backup.progress.copied, filter->size);
  EXPECT_LE(backup.progress.copied, filter->size + 16 * 1024U);
}

TEST(DifferentialBackup, KeepsTheFilterOfALogThatHasGrownByLess) {
  const std::string name = "index/stream-existence/streamExistenceFilter";
  BackupCase backup;
  backup.fill(300);
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  const auto first = value(backup.back_up(options));
  const auto* const filter = first.find(name + ".dat");
  ASSERT_NE(filter, nullptr);
  const auto checkpoint = checkpoint_in(backup.disk, "/db/" + name + ".chk");
  backup.builder.open();
  backup.builder.write("new-stream", 22, 20);  // fills a table
  backup.builder.close();
  const auto grown = checkpoint_in(backup.disk, "/db/" + name + ".chk");
  ASSERT_GT(grown, checkpoint);
  ASSERT_LT(grown - checkpoint, static_cast<std::int64_t>(filter->size));
  options.parent = first;
  const auto differential = value(backup.back_up(options));
  EXPECT_EQ(*differential.find(name + ".dat"), *filter);
  EXPECT_EQ(*differential.find(name + ".chk"), *first.find(name + ".chk"));
  ok(backup.restore(differential, "/restored"));
  // From there on a node reads the log when it starts.
  EXPECT_EQ(checkpoint_in(backup.disk, "/restored/" + name + ".chk"), checkpoint);
  // Once the log has grown by more, the filter is read again.
  backup.builder.open();
  for (std::int64_t end = grown; end - checkpoint < static_cast<std::int64_t>(filter->size);) {
    backup.builder.write("more", 20, 200);
    end = backup.builder.database().transaction_log().end().value();
  }
  backup.builder.write("last", 40, 10);
  backup.builder.close();
  options.parent = differential;
  const auto next = value(backup.back_up(options));
  EXPECT_NE(next.find(name + ".chk")->sha256, first.find(name + ".chk")->sha256);
  backup.builder.open();
  expect_restored(backup, next, "/again");
}

/// Both files of a filter before it lost its streams.
struct Filter {
  Bytes checkpoint;
  Bytes content;
};

const std::string kFilter = "stream-existence/streamExistenceFilter";
const std::string kFilterFiles = "/db/index/" + kFilter;

/// A backup while the filter lacks all streams, then a cure, then a backup of what may have grown
/// meanwhile, which has the filter of the node.
void expect_cured_filter(const std::function<void(MemoryFileSystem&, const Filter&)>& cure,
                         bool grows) {
  const std::string name = "index/" + kFilter + ".dat";
  BackupCase backup;
  backup.fill(300);
  backup.builder.close();
  const Filter healthy{.checkpoint = value(read_file(backup.disk, kFilterFiles + ".chk")),
                       .content = value(read_file(backup.disk, kFilterFiles + ".dat"))};
  test::lose_all_streams(backup.disk, "/db/index");
  auto options = backup.options(SourceState::kStopped);
  options.parent = value(backup.back_up(options));
  EXPECT_NE(options.parent->find(name)->sha256, sha256(healthy.content));
  cure(backup.disk, healthy);
  if (grows) {
    backup.builder.open();
    backup.builder.write("stream-1", 22, 20);  // fills a table
    backup.builder.close();
  }
  const auto next = value(backup.back_up(options));
  EXPECT_EQ(to_hex(next.find(name)->sha256),
            to_hex(sha256(value(read_file(backup.disk, kFilterFiles + ".dat")))));
}

TEST(DifferentialBackup, ReadsAFilterThatWasMadeAnew) {
  for (const bool grows : {false, true}) {
    SCOPED_TRACE(grows ? "the log grows" : "nothing new");
    // As after a heal: the server found no checkpoint, and wrote into the file of before.
    expect_cured_filter(
        [](MemoryFileSystem& disk, const Filter& healthy) {
          ok(disk.remove(kFilterFiles + ".chk"));
          ok(value(disk.open(kFilterFiles + ".dat", OpenMode::kReadWrite))
                 ->write_at(0, healthy.content));
          ok(write_file_durably(disk, kFilterFiles + ".chk", healthy.checkpoint));
        },
        grows);
    // As after a server found its filter damaged: it removes the file, and keeps the checkpoint's.
    expect_cured_filter(
        [](MemoryFileSystem& disk, const Filter& healthy) {
          ok(disk.remove(kFilterFiles + ".dat"));
          ok(write_file_durably(disk, kFilterFiles + ".dat", healthy.content));
        },
        grows);
  }
}

TEST(DifferentialBackup, ReadsAFileOfTheSameNameAndOtherContent) {
  BackupCase backup;
  backup.fill();
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  const auto full = value(backup.back_up(options));
  // Another log in the same files.
  BackupCase other({.seed = 77});
  other.fill();
  other.builder.close();
  for (const auto& entry : value(backup.disk.list("/db"))) {
    if (!entry.is_directory) {
      ok(backup.disk.set_read_only(Path("/db") / entry.name, false));
      ok(backup.disk.remove(Path("/db") / entry.name));
    }
  }
  ok(backup.disk.import_tree(other.disk, "/db", "/db"));
  options.parent = full;
  const auto next = value(backup.back_up(options));
  ASSERT_EQ(full.files.front().path, next.files.front().path);
  ok(backup.restore(next, "/restored"));
  const auto restored = backup.open("/restored");
  other.builder.open();
  EXPECT_EQ(backup.digest(*restored, next.positions.end),
            other.digest(other.builder.database(), next.positions.end));
}

TEST(DifferentialBackup, RefusesAParentOfAnotherNode) {
  BackupCase backup;
  backup.fill(10);
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  options.parent = value(backup.back_up(options));
  options.node.node = "n2";
  const auto other = backup.back_up(options);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kRefused);
  EXPECT_THAT(other.error().message, HasSubstr("never mixed"));
}

}  // namespace
}  // namespace verger::backup
