#include "nodeagent/external/file_access.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_directory.h"

namespace verger::external {
namespace {

namespace fs = std::filesystem;

class FileAccessTest : public ::testing::Test {
 protected:
  Path put(const std::string& name) const {
    const auto path = directory_.path() / name;
    std::ofstream(path) << name;
    return path;
  }
  static std::string text_of(const Path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  test::TempDirectory directory_;
  FileAccess& access_ = posix_file_access();
};

TEST_F(FileAccessTest, FollowsLinksToTheirEnd) {
  const auto file = put("node1.crt");
  fs::create_symlink("node1.crt", directory_.path() / "current.crt");
  fs::create_symlink("current.crt", directory_.path() / "node.crt");
  EXPECT_EQ(access_.target_of(directory_.path() / "node.crt").value_or(""), fs::canonical(file));
  EXPECT_EQ(access_.target_of(file).value_or(""), fs::canonical(file));
  EXPECT_EQ(access_.target_of(directory_.path() / "none").error().code, Errc::kNotFound);
}

TEST_F(FileAccessTest, WritesFilesThatOnlyTheirOwnerReadsUnderAnyMask) {
  const auto path = directory_.path() / "node.key";
  const auto mask = ::umask(0);
  const auto made = access_.write_new(posix_file_system(), path, "secret", std::nullopt);
  ::umask(mask);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(access_.attributes_of(path)->mode, 0600U);
  EXPECT_EQ(text_of(path), "secret");
  EXPECT_EQ(access_.write_new(posix_file_system(), path, "", std::nullopt).error().code,
            Errc::kExists);
}

TEST_F(FileAccessTest, FollowsNoLinkThatLiesInItsWay) {
  const auto victim = put("victim");
  fs::create_symlink(victim, directory_.path() / "node.key");
  EXPECT_FALSE(access_.write_new(posix_file_system(), directory_.path() / "node.key", "secret",
                                 std::nullopt));
  fs::create_symlink(directory_.path() / "none", directory_.path() / "other.key");
  EXPECT_FALSE(access_.write_new(posix_file_system(), directory_.path() / "other.key", "secret",
                                 std::nullopt));
  EXPECT_EQ(text_of(victim), "victim");
  EXPECT_FALSE(fs::exists(directory_.path() / "none"));
}

TEST_F(FileAccessTest, GivesAFileTheModeAndTheOwnerOfAnother) {
  auto wanted = *access_.attributes_of(put("node.crt"));
  wanted.mode = 0440;
  const auto path = directory_.path() / "copy";
  ASSERT_TRUE(access_.write_new(posix_file_system(), path, "text", wanted));
  EXPECT_EQ(access_.attributes_of(path).value_or(FileAttributes{}), wanted);
  wanted.owner += 1;
  const auto other = directory_.path() / "other";
  const auto given = access_.write_new(posix_file_system(), other, "text", wanted);
  if (::geteuid() == 0) {
    ASSERT_TRUE(given) << given.error().message;
    EXPECT_EQ(access_.attributes_of(other).value_or(FileAttributes{}), wanted);
  } else {
    EXPECT_EQ(given.error().code, Errc::kRefused) << given.error().message;
    EXPECT_FALSE(fs::exists(other)) << "nothing is left";
  }
}

TEST_F(FileAccessTest, SaysWhyADirectoryCannotBeWritten) {
  EXPECT_EQ(access_.not_writable(directory_.path()), "");
  EXPECT_NE(access_.not_writable(directory_.path() / "none"), "");
}

}  // namespace
}  // namespace verger::external
