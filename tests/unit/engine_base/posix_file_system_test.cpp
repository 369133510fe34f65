#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file_system.h"
#include "engine/base/unique_fd.h"
#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using testing::HasSubstr;

class PosixFileSystem : public testing::Test {
 protected:
  Path at(std::string_view name) const { return directory_.path() / name; }
  std::string text_of(std::string_view name) {
    return std::string(as_text(read_file(files_, at(name)).value()));
  }

  test::TempDirectory directory_;
  FileSystem& files_ = posix_file_system();
};

TEST_F(PosixFileSystem, WritesAndReadsAtPositions) {
  auto file = files_.open(at("a"), OpenMode::kCreateNew).value();
  ASSERT_TRUE(file->write_at(3, as_bytes("def")));
  ASSERT_TRUE(file->write_at(0, as_bytes("abc")));
  ASSERT_TRUE(file->sync());
  Bytes bytes(10);
  EXPECT_EQ(file->read_at(1, bytes).value(), 5U);
  EXPECT_EQ(as_text(ByteView(bytes).first(5)), "bcdef");
  EXPECT_EQ(file->read_at(6, bytes).value(), 0U);
  EXPECT_EQ(file->size().value(), 6U);
  ASSERT_TRUE(file->resize(4));
  EXPECT_EQ(text_of("a"), "abcd");
  ASSERT_TRUE(file->resize(6));
  EXPECT_EQ(text_of("a"), std::string("abcd\0\0", 6));
}

TEST_F(PosixFileSystem, OpensAsTheModeSays) {
  EXPECT_EQ(files_.open(at("a"), OpenMode::kRead).error().code, Errc::kNotFound);
  EXPECT_EQ(files_.open(at("a"), OpenMode::kReadWrite).error().code, Errc::kNotFound);
  ASSERT_TRUE(files_.open(at("a"), OpenMode::kCreate).value()->write_at(0, as_bytes("abc")));
  EXPECT_EQ(files_.open(at("a"), OpenMode::kCreateNew).error().code, Errc::kExists);
  EXPECT_EQ(files_.open(at("a"), OpenMode::kCreate).value()->size().value(), 3U);
  auto reader = files_.open(at("a"), OpenMode::kRead).value();
  const auto written = reader->write_at(0, as_bytes("x"));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr(at("a").string()));
}

TEST_F(PosixFileSystem, DoesNotOpenADirectoryAsAFile) {
  const auto opened = files_.open(directory_.path(), OpenMode::kRead);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kIo);
  EXPECT_THAT(opened.error().message, HasSubstr("directory"));
}

TEST_F(PosixFileSystem, NamesPathAndCauseInItsErrors) {
  const auto opened = files_.open(at("missing/file"), OpenMode::kCreate);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kNotFound);
  EXPECT_EQ(opened.error().message,
            at("missing/file").string() + ": cannot open: No such file or directory");
}

TEST_F(PosixFileSystem, TellsAFullDiskApart) {
  auto full = files_.open("/dev/full", OpenMode::kReadWrite).value();
  const auto written = full->write_at(0, as_bytes("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kNoSpace);
  EXPECT_THAT(written.error().message, HasSubstr("/dev/full"));
}

TEST_F(PosixFileSystem, WritesNoMoreAfterAFailedSync) {
  // A pipe can be opened by path and takes no fdatasync.
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  auto file = files_.open(at("pipe"), OpenMode::kReadWrite).value();
  EXPECT_EQ(file->sync().error().code, Errc::kIo);
  EXPECT_THAT(file->sync().error().message, HasSubstr("earlier sync failed"));
  EXPECT_THAT(file->write_at(0, as_bytes("x")).error().message, HasSubstr("earlier sync failed"));
  EXPECT_THAT(file->resize(0).error().message, HasSubstr("earlier sync failed"));
}

TEST_F(PosixFileSystem, ReadExactRefusesAFileThatEndsBefore) {
  auto file = files_.open(at("a"), OpenMode::kCreate).value();
  ASSERT_TRUE(file->write_at(0, as_bytes("abc")));
  Bytes bytes(2);
  EXPECT_TRUE(file->read_exact(1, bytes));
  EXPECT_EQ(as_text(bytes), "bc");
  const auto read = file->read_exact(2, bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorruption);
  EXPECT_THAT(read.error().message, HasSubstr(at("a").string() + ": ends at offset 3"));
}

TEST_F(PosixFileSystem, ListsByName) {
  ASSERT_TRUE(files_.make_directories(at("d/sub/deep")));
  ASSERT_TRUE(files_.make_directories(at("d/sub/deep")));
  ASSERT_TRUE(write_file_durably(files_, at("d/b"), as_bytes("12")));
  ASSERT_TRUE(write_file_durably(files_, at("d/a"), as_bytes("1")));
  const auto entries = files_.list(at("d")).value();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].size, 2U);
  EXPECT_EQ(entries[2].name, "sub");
  EXPECT_TRUE(entries[2].is_directory);
  EXPECT_EQ(files_.list(at("nothing")).error().code, Errc::kNotFound);
  EXPECT_EQ(files_.make_directories(at("d/a")).error().code, Errc::kExists);
}

TEST_F(PosixFileSystem, RenamesRemovesAndFinds) {
  ASSERT_TRUE(write_file_durably(files_, at("a"), as_bytes("new")));
  ASSERT_TRUE(write_file_durably(files_, at("b"), as_bytes("old")));
  ASSERT_TRUE(files_.rename(at("a"), at("b")));
  ASSERT_TRUE(files_.sync_directory(directory_.path()));
  EXPECT_EQ(text_of("b"), "new");
  EXPECT_FALSE(files_.exists(at("a")).value());
  EXPECT_TRUE(files_.exists(at("b")).value());
  EXPECT_EQ(files_.file_size(at("b")).value(), 3U);
  EXPECT_EQ(files_.file_size(at("a")).error().code, Errc::kNotFound);
  ASSERT_TRUE(files_.remove(at("b")));
  EXPECT_EQ(files_.remove(at("b")).error().code, Errc::kNotFound);
  EXPECT_EQ(files_.rename(at("a"), at("b")).error().code, Errc::kNotFound);
  EXPECT_EQ(files_.sync_directory(at("nothing")).error().code, Errc::kNotFound);
}

TEST_F(PosixFileSystem, TellsAFileFromTheNextOneOfItsName) {
  ASSERT_TRUE(write_file_durably(files_, at("a"), as_bytes("first")));
  const auto first = files_.file_identity(at("a")).value();
  if (first.empty()) {
    GTEST_SKIP() << "this file system does not say when a file was made";
  }
  {
    auto file = files_.open(at("a"), OpenMode::kReadWrite).value();
    ASSERT_TRUE(file->write_at(0, as_bytes("longer than before")));
    ASSERT_TRUE(files_.rename(at("a"), at("b")));
  }
  EXPECT_EQ(files_.file_identity(at("b")).value(), first);
  ASSERT_TRUE(files_.remove(at("b")));
  ASSERT_TRUE(write_file_durably(files_, at("b"), as_bytes("longer than before")));
  EXPECT_NE(files_.file_identity(at("b")).value(), first);
  EXPECT_EQ(files_.file_identity(at("nothing")).error().code, Errc::kNotFound);
}

TEST_F(PosixFileSystem, ClearsAndSetsTheWritePermission) {
  ASSERT_TRUE(write_file_durably(files_, at("a"), as_bytes("x")));
  const auto write_bits = [&] {
    struct stat status{};
    EXPECT_EQ(::stat(at("a").c_str(), &status), 0);
    return status.st_mode & 0222U;
  };
  ASSERT_TRUE(files_.set_read_only(at("a"), true));
  EXPECT_EQ(write_bits(), 0U);
  ASSERT_TRUE(files_.set_read_only(at("a"), false));
  EXPECT_EQ(write_bits(), 0200U);
  EXPECT_EQ(files_.set_read_only(at("b"), true).error().code, Errc::kNotFound);
}

TEST_F(PosixFileSystem, GivesALockToOneHolderOnly) {
  auto first = files_.lock(at("verger.lock"));
  ASSERT_TRUE(first);
  const auto second = files_.lock(at("verger.lock"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kRefused);
  EXPECT_THAT(second.error().message, HasSubstr(at("verger.lock").string()));
  first->reset();
  EXPECT_TRUE(files_.lock(at("verger.lock")));
}

TEST_F(PosixFileSystem, KnowsTheSpaceOfTheDisk) {
  const auto space = files_.space(directory_.path()).value();
  EXPECT_GT(space.total, 0U);
  EXPECT_LE(space.available, space.total);
  EXPECT_EQ(files_.space(at("nothing")).error().code, Errc::kNotFound);
}

TEST_F(PosixFileSystem, ReplacesAWholeFileDurably) {
  ASSERT_TRUE(write_file_durably(files_, at("a"), as_bytes("something longer")));
  {
    auto left = files_.open(at("a.tmp"), OpenMode::kCreate).value();  // left by a crash
    ASSERT_TRUE(left->write_at(0, as_bytes("half a file, longer than what comes")));
  }
  ASSERT_TRUE(write_file_durably(files_, at("a"), as_bytes("short")));
  EXPECT_EQ(text_of("a"), "short");
  EXPECT_FALSE(files_.exists(at("a.tmp")).value());
}

TEST_F(PosixFileSystem, ReadsNoFileLargerThanTheLimit) {
  ASSERT_TRUE(write_file_durably(files_, at("a"), as_bytes("12345")));
  EXPECT_TRUE(read_file(files_, at("a"), 5));
  EXPECT_EQ(read_file(files_, at("a"), 4).error().code, Errc::kUnsupported);
}

TEST(UniqueFd, ClosesWhatItOwnsOnce) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(raw, 0);
  {
    UniqueFd first(raw);
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what a move leaves
    EXPECT_EQ(second.get(), raw);
    EXPECT_GE(::fcntl(raw, F_GETFD), 0);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

}  // namespace
}  // namespace verger
