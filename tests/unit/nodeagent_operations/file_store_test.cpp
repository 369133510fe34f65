#include "nodeagent/operations/file_store.h"

#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/digest.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/private_file.h"
#include "tests/support/kept_log.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_directory.h"

namespace verger::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string hash_of(std::string_view content) { return to_hex(sha256(as_bytes(content))); }

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() { reopen(); }
  void reopen(FileSystem* on = nullptr) {
    store_.reset();
    auto opened = FileStore::open("/agent/files",
                                  {.files = on == nullptr ? disk_ : *on,
                                   .clock = clock_,
                                   .log = log_,
                                   .in_use = [this](auto hash) { return hash == used_; }},
                                  limits_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  Result<api::StoredFile> put(std::string_view content) {
    return store_->put(hash_of(content), as_bytes(content));
  }
  [[nodiscard]] std::string content_of(std::string_view content) const {
    const auto read = store_->read(hash_of(content));
    return read ? std::string(as_text(*read)) : read.error().message;
  }

  MemoryFileSystem disk_;
  test::ManualClock clock_;
  test::KeptLog log_;
  std::string used_;
  FileStoreLimits limits_{.file_bytes = 100, .total_bytes = 250};
  std::unique_ptr<FileStore> store_;
};

TEST_F(FileStoreTest, KeepsAFileOverARestartAndAPowerCut) {
  const auto stored = put("a key");
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->sha256, hash_of("a key"));
  EXPECT_EQ(stored->bytes, 5);
  EXPECT_EQ(stored->stored_at, format_ticks(clock_.now()));
  disk_.cut_power();
  reopen();
  EXPECT_EQ(content_of("a key"), "a key");
  EXPECT_EQ(store_->find(hash_of("a key"))->stored_at, stored->stored_at);
  EXPECT_THAT(store_->list(), SizeIs(1));
}

TEST_F(FileStoreTest, RefusesAnotherContentThanTheHashNames) {
  const auto stored = store_->put(hash_of("a key"), as_bytes("another"));
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(stored.error().message, HasSubstr(hash_of("another")));
  EXPECT_FALSE(store_->put("../../etc/passwd", as_bytes("x")));
  EXPECT_FALSE(store_->put(std::string(64, 'A'), as_bytes("x")));
  EXPECT_THAT(store_->list(), IsEmpty());
  EXPECT_THAT(*disk_.list("/agent/files"), IsEmpty());
}

TEST_F(FileStoreTest, HasABoundForEachFileAndForAllOfThem) {
  const auto large = put(std::string(101, 'x'));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(put(std::string(100, 'a')));
  ASSERT_TRUE(put(std::string(100, 'b')));
  const auto more = put(std::string(100, 'c'));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::kNoSpace);
  EXPECT_TRUE(put(std::string(100, 'b'))) << "is there already";
  ASSERT_TRUE(store_->remove(hash_of(std::string(100, 'a'))));
  EXPECT_TRUE(put(std::string(100, 'c')));
}

TEST_F(FileStoreTest, ForgetsWhatIsOldUnlessAnOperationRefersToIt) {
  ASSERT_TRUE(put("old"));
  ASSERT_TRUE(put("used"));
  ASSERT_TRUE(put("again"));
  used_ = hash_of("used");
  clock_.advance_seconds(6 * 24 * 3600);
  ASSERT_TRUE(put("again"));
  clock_.advance_seconds(2 * 24 * 3600);
  store_->collect();
  EXPECT_FALSE(store_->find(hash_of("old")));
  EXPECT_EQ(content_of("used"), "used");
  EXPECT_EQ(content_of("again"), "again");
  EXPECT_EQ(store_->remove(used_).error().code, Errc::kConflict);
  const std::string kept = used_;
  used_.clear();
  reopen();
  EXPECT_FALSE(store_->find(kept)) << "collected at the start, too";
  EXPECT_EQ(content_of("again"), "again");
  EXPECT_THAT(*disk_.list("/agent/files"), SizeIs(1));
}

TEST_F(FileStoreTest, ShowsAndReplacesContentThatChangedOnTheDisk) {
  ASSERT_TRUE(put("a key"));
  const auto name = Path("/agent/files") / disk_.list("/agent/files")->front().name;
  auto file = disk_.open(name, OpenMode::kReadWrite);
  ASSERT_TRUE((*file)->write_at(0, as_bytes("A")));
  EXPECT_EQ(store_->read(hash_of("a key")).error().code, Errc::kCorruption);
  ASSERT_TRUE(put("a key"));
  EXPECT_EQ(content_of("a key"), "a key");
}

TEST_F(FileStoreTest, NeverLogsAContent) {
  const std::string secret = "-----BEGIN PRIVATE KEY----- zebra";
  ASSERT_TRUE(put(secret));
  EXPECT_FALSE(store_->put(hash_of("x"), as_bytes(secret)));
  disk_.set_free_space(0);
  const auto full = put(secret + "2");
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, Not(HasSubstr("zebra")));
  ASSERT_TRUE(store_->remove(hash_of(secret)));
  EXPECT_THAT(log_.text, HasSubstr(hash_of(secret)));
  EXPECT_THAT(log_.text, Not(HasSubstr("zebra")));
}

/// Each operation of the disk fails once, with and without a power cut after it: the file is there
/// as a whole or not at all, nothing half written stays, and it can be stored again.
TEST_F(FileStoreTest, SurvivesTheFailureOfAnyDiskOperation) {
  for (const bool cut : {false, true}) {
    for (std::uint64_t nth = 0;; ++nth) {
      SCOPED_TRACE(fmt::format("operation {}, power cut {}", nth, cut));
      MemoryFileSystem disk;
      reopen(&disk);
      ASSERT_TRUE(put("before"));
      clock_.advance_seconds(1);
      disk.reset_count();
      disk.set_fault_hook([nth](const DiskOperation& operation) {
        return operation.number == nth
                   ? std::optional(Error{Errc::kNoSpace, operation.path.string() + ": full"})
                   : std::nullopt;
      });
      const auto stored = put("a key");
      const bool reached = disk.operation_count() > nth;
      disk.set_fault_hook(nullptr);
      if (cut) {
        disk.cut_power(nth);
      }
      reopen(&disk);
      EXPECT_EQ(content_of("before"), "before");
      if (stored) {
        EXPECT_EQ(content_of("a key"), "a key");
      } else if (const auto left = store_->find(hash_of("a key"))) {
        EXPECT_EQ(content_of("a key"), "a key") << "as a whole";
      }
      for (const auto& entry : *disk.list("/agent/files")) {
        EXPECT_THAT(entry.name, Not(HasSubstr("tmp")));
      }
      ASSERT_TRUE(put("a key"));
      EXPECT_EQ(content_of("a key"), "a key");
      EXPECT_THAT(store_->list(), SizeIs(2));
      if (!reached) {
        break;
      }
    }
  }
}

TEST(FileStoreOnADisk, LetsOnlyTheOwnerRead) {
  test::TempDirectory directory;
  test::ManualClock clock;
  auto store = FileStore::open(directory.path() / "files", {.files = posix_file_system(),
                                                            .clock = clock,
                                                            .log = null_log(),
                                                            .make_private = &make_private});
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->put(hash_of("a key"), as_bytes("a key")));
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path() / "files")) {
    EXPECT_TRUE(check_private_file(entry.path())) << entry.path();
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace verger::agent
