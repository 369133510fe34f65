#include "engine/base/memory_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/random.h"
#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(FileSystem& files, const Path& path) {
  const auto content = read_file(files, path);
  return content ? std::string(as_text(*content)) : "(" + content.error().message + ")";
}

void put(FileSystem& files, const Path& path, std::string_view text) {
  auto file = files.open(path, OpenMode::kCreate).value();
  ASSERT_TRUE(file->write_at(0, as_bytes(text)));
}

TEST(MemoryFileSystem, WritesAndReadsAtPositions) {
  MemoryFileSystem files;
  auto file = files.open("a", OpenMode::kCreateNew).value();
  ASSERT_TRUE(file->write_at(3, as_bytes("def")));
  ASSERT_TRUE(file->write_at(0, as_bytes("abc")));
  Bytes bytes(10);
  EXPECT_EQ(file->read_at(1, bytes).value(), 5U);
  EXPECT_EQ(as_text(ByteView(bytes).first(5)), "bcdef");
  EXPECT_EQ(file->read_at(6, bytes).value(), 0U);
  ASSERT_TRUE(file->resize(2));
  ASSERT_TRUE(file->resize(4));
  EXPECT_EQ(text_of(files, "/a"), std::string("ab\0\0", 4));
}

TEST(MemoryFileSystem, KeepsContentAcrossPages) {
  MemoryFileSystem files;
  std::string expected;
  auto file = files.open("a", OpenMode::kCreate).value();
  SeededRandom random(7);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t offset = random.below(20'000);
    const std::string piece(random.below(9'000), static_cast<char>('a' + random.below(26)));
    if (i % 10 == 9) {
      ASSERT_TRUE(file->resize(offset));
      expected.resize(offset);
      continue;
    }
    ASSERT_TRUE(file->write_at(offset, as_bytes(piece)));
    if (!piece.empty()) {
      expected.resize(std::max<std::size_t>(expected.size(), offset + piece.size()));
      expected.replace(offset, piece.size(), piece);
    }
    ASSERT_EQ(text_of(files, "a"), expected) << i;
  }
}

TEST(MemoryFileSystem, OpensAsTheModeSays) {
  MemoryFileSystem files;
  EXPECT_EQ(files.open("a", OpenMode::kRead).error().code, Errc::kNotFound);
  EXPECT_EQ(files.open("a", OpenMode::kReadWrite).error().code, Errc::kNotFound);
  EXPECT_EQ(files.open("d/a", OpenMode::kCreate).error().code, Errc::kNotFound);
  put(files, "a", "abc");
  EXPECT_EQ(files.open("a", OpenMode::kCreateNew).error().code, Errc::kExists);
  EXPECT_EQ(files.open("a", OpenMode::kCreate).value()->size().value(), 3U);
  EXPECT_EQ(files.open("a/b", OpenMode::kCreate).error().code, Errc::kNotFound);
  EXPECT_EQ(files.open("/", OpenMode::kRead).error().code, Errc::kIo);
  auto reader = files.open("a", OpenMode::kRead).value();
  EXPECT_EQ(reader->write_at(0, as_bytes("x")).error().code, Errc::kIo);
  EXPECT_EQ(reader->resize(0).error().code, Errc::kIo);
}

TEST(MemoryFileSystem, KeepsReadOnlyFilesFromBeingOpenedForWriting) {
  MemoryFileSystem files;
  put(files, "a", "abc");
  ASSERT_TRUE(files.set_read_only("a", true));
  EXPECT_TRUE(files.open("a", OpenMode::kRead));
  const auto opened = files.open("a", OpenMode::kReadWrite);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("a: cannot open: Permission denied"));
  ASSERT_TRUE(files.set_read_only("a", false));
  EXPECT_TRUE(files.open("a", OpenMode::kReadWrite));
  ASSERT_TRUE(files.set_read_only("a", true));
  EXPECT_TRUE(files.remove("a"));
}

TEST(MemoryFileSystem, ListsRenamesAndRemoves) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directories("d/sub/deep"));
  ASSERT_TRUE(files.make_directories("d/sub/deep"));
  put(files, "d/b", "12");
  put(files, "d/a", "1");
  const auto entries = files.list("d").value();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[1].size, 2U);
  EXPECT_TRUE(entries[2].is_directory);
  ASSERT_TRUE(files.rename("d/a", "d/sub/b"));
  ASSERT_TRUE(files.rename("d/b", "d/sub/b"));
  EXPECT_EQ(text_of(files, "d/sub/b"), "12");
  EXPECT_EQ(files.file_size("d/sub/b").value(), 2U);
  EXPECT_FALSE(files.exists("d/a").value());
  EXPECT_EQ(files.rename("d/a", "d/c").error().code, Errc::kNotFound);
  EXPECT_EQ(files.rename("d", "d/sub/d").error().code, Errc::kIo);
  EXPECT_EQ(files.rename("d/sub/b", "d/sub/deep").error().code, Errc::kIo);
  EXPECT_EQ(files.remove("d/sub").error().code, Errc::kIo);
  EXPECT_TRUE(files.remove("d/sub/deep"));
  EXPECT_EQ(files.remove("d/sub/deep").error().code, Errc::kNotFound);
  ASSERT_TRUE(files.rename("d", "e"));
  EXPECT_EQ(text_of(files, "e/sub/b"), "12");
  EXPECT_EQ(files.list("d").error().code, Errc::kNotFound);
  EXPECT_EQ(files.make_directories("e/sub/b").error().code, Errc::kExists);
  EXPECT_EQ(files.sync_directory("d").error().code, Errc::kNotFound);
}

TEST(MemoryFileSystem, GivesALockToOneHolderOnly) {
  MemoryFileSystem files;
  auto first = files.lock("verger.lock").value();
  EXPECT_EQ(files.lock("verger.lock").error().code, Errc::kRefused);
  first.reset();
  auto second = files.lock("verger.lock").value();
  files.kill_process();
  auto third = files.lock("verger.lock").value();
  second.reset();  // of a dead process: must not release the lock of the living one
  EXPECT_EQ(files.lock("verger.lock").error().code, Errc::kRefused);
}

TEST(MemoryFileSystem, FillsUp) {
  MemoryFileSystem files;
  auto file = files.open("a", OpenMode::kCreate).value();
  files.set_free_space(10);
  ASSERT_TRUE(file->resize(100'000));  // claims nothing yet
  ASSERT_TRUE(file->write_at(50'000, as_bytes("12345678")));
  EXPECT_EQ(files.space("a").value().available, 2U);
  const auto written = file->write_at(0, as_bytes("123"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kNoSpace);
  EXPECT_THAT(written.error().message, HasSubstr("a: cannot write at offset 0"));
  EXPECT_TRUE(file->write_at(50'000, as_bytes("abcdefgh")));  // goes over what is there
  EXPECT_EQ(files.no_space_count(), 1U);
  files.set_free_space(std::nullopt);
  EXPECT_TRUE(file->write_at(0, as_bytes("123")));
}

TEST(MemoryFileSystem, RefusesAFileOfAbsurdSize) {
  MemoryFileSystem files;
  auto file = files.open("a", OpenMode::kCreate).value();
  EXPECT_EQ(file->resize(1ULL << 62U).error().code, Errc::kIo);
  EXPECT_EQ(file->write_at(~0ULL - 1, as_bytes("abc")).error().code, Errc::kIo);
}

TEST(MemoryFileSystem, ClonesShareNothingThatIsWritten) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directories("d"));
  put(files, "d/a", std::string(10'000, 'a'));
  const auto copy = files.clone();
  put(files, "d/a", "original");
  put(*copy, "d/a", "copy");
  EXPECT_EQ(text_of(files, "d/a"), "original" + std::string(9'992, 'a'));
  copy->cut_power();  // only what was written since the cloning is lost
  EXPECT_EQ(text_of(*copy, "d/a"), std::string(10'000, 'a'));
}

TEST(MemoryFileSystem, TellsAFileFromTheNextOneOfItsName) {
  MemoryFileSystem files;
  put(files, "a", "first");
  put(files, "b", "other");
  const auto first = files.file_identity("a").value();
  EXPECT_NE(files.file_identity("b").value(), first);
  const auto copy = files.clone();
  ASSERT_TRUE(files.rename("a", "c"));
  put(files, "c", "longer than before");
  EXPECT_EQ(files.file_identity("c").value(), first);
  ASSERT_TRUE(files.remove("c"));
  put(files, "c", "longer than before");
  EXPECT_NE(files.file_identity("c").value(), first);
  EXPECT_EQ(files.file_identity("a").error().code, Errc::kNotFound);
  // As a snapshot of a volume.
  EXPECT_EQ(copy->file_identity("a").value(), first);
  put(*copy, "d", "new");
  EXPECT_NE(copy->file_identity("d").value(), files.file_identity("b").value());
}

TEST(MemoryFileSystem, ImportsATreeDurably) {
  const test::TempDirectory directory;
  auto& disk = posix_file_system();
  ASSERT_TRUE(disk.make_directories(directory.path() / "index"));
  ASSERT_TRUE(write_file_durably(disk, directory.path() / "index/a", as_bytes("abc")));
  {
    auto sparse = disk.open(directory.path() / "sparse", OpenMode::kCreate).value();
    ASSERT_TRUE(sparse->resize(3'000'000));
    ASSERT_TRUE(sparse->write_at(2'000'000, as_bytes("x")));
  }
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directories("db/index"));
  put(files, "db/index/b", "lost");
  ASSERT_TRUE(files.import_tree(disk, directory.path(), "db"));
  EXPECT_EQ(text_of(files, "db/index/b"), "lost");
  files.cut_power();
  EXPECT_EQ(text_of(files, "db/index/a"), "abc");
  EXPECT_EQ(read_file(files, "db/sparse").value(),
            read_file(disk, directory.path() / "sparse").value());
  EXPECT_FALSE(files.exists("db/index/b").value());
  EXPECT_EQ(files.import_tree(disk, directory.path() / "no", "x").error().code, Errc::kNotFound);
}

TEST(MemoryFileSystem, TellsTheHookEachMutatingOperation) {
  MemoryFileSystem files;
  std::vector<std::string> seen;
  files.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    EXPECT_EQ(operation.number, seen.size());
    seen.push_back(std::string(operation.kind) + " " + operation.path.string());
    return std::nullopt;
  });
  ASSERT_TRUE(files.make_directories("d/e"));
  auto file = files.open("d/a", OpenMode::kCreate).value();
  ASSERT_TRUE(files.open("d/a", OpenMode::kCreate));
  ASSERT_TRUE(file->write_at(0, as_bytes("abc")));
  ASSERT_TRUE(file->resize(2));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(files.set_read_only("d/a", true));
  ASSERT_TRUE(files.rename("d/a", "d/b"));
  ASSERT_TRUE(files.sync_directory("d"));
  ASSERT_TRUE(files.lock("l"));
  ASSERT_TRUE(files.remove("d/b"));
  EXPECT_THAT(seen, ElementsAre("make_directory d", "make_directory d/e", "create d/a", "write d/a",
                                "resize d/a", "sync d/a", "set_read_only d/a", "rename d/a",
                                "sync_directory d", "create l", "remove d/b"));
  EXPECT_EQ(files.operation_count(), 11U);
  files.reset_count();
  EXPECT_EQ(files.operation_count(), 0U);
}

TEST(MemoryFileSystem, ChangesNothingInAnOperationThatTheHookFails) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    MemoryFileSystem files;
    ASSERT_TRUE(files.make_directories("d"));
    put(files, "d/old", "old");
    files.reset_count();
    files.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      return operation.number == nth ? std::optional(Error{Errc::kIo, "injected"}) : std::nullopt;
    });
    const auto replaced = write_file_durably(files, "d/old", as_bytes("new"));
    if (replaced) {
      EXPECT_EQ(nth, 6U);  // create, resize, write, sync, rename, sync_directory
      break;
    }
    EXPECT_EQ(replaced.error().message, "injected");
    EXPECT_EQ(text_of(files, "d/old"), nth < 5 ? "old" : "new");
    EXPECT_EQ(files.list("d").value().size(), 1U);  // the temporary file is gone
  }
}

}  // namespace
}  // namespace verger
