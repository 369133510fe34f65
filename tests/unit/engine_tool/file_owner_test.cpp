// Files of a server that is another user, on the machine's disk.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/database_files.h"
#include "engine/tool/program.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_hash.h"

namespace verger::tool {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kServer = 4242;

class FileOwner : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "needs root, to give files to another user and to become one";
    }
    test::DatabaseBuilder builder(posix_file_system(), directory_);
    builder.metadata("s", R"({"$maxCount":1})");
    builder.write("s", 40);
    builder.close();
    give_to_server(directory_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      give_to_server(entry.path());
    }
    ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
  }
  static void give_to_server(const Path& path) {
    ASSERT_EQ(::lchown(path.c_str(), kServer, kServer), 0);
  }

  int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "verger-db");
    out_.str("");
    err_.str("");
    ToolContext tool{
        database_file_system(), system_clock(), system_random(), null_log(), out_, err_};
    return run_program(static_cast<int>(arguments.size()), arguments.data(), tool);
  }

  test::TempDirectory temp_;
  const Path directory_ = temp_.path() / "db";
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(FileOwner, WhatAScavengeByRootMakesIsTheServers) {
  const auto old_mask = ::umask(077);
  EXPECT_EQ(run({"scavenge", directory_.c_str(), "--new-point"}), kExitDone) << err_.str();
  EXPECT_EQ(run({"index", "rebuild", directory_.c_str()}), kExitDone) << err_.str();
  ::umask(old_mask);
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    struct stat found{};
    ASSERT_EQ(::stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_uid, kServer) << entry.path();
    EXPECT_EQ(found.st_gid, kServer) << entry.path();
    EXPECT_NE(found.st_mode & S_IROTH, 0U)
        << entry.path() << ": its directory is everybody's to read";
    ++seen;
  }
  EXPECT_GT(seen, 8U);
}

TEST_F(FileOwner, AnotherUserIsRefusedBeforeTheFirstChange) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  const auto before = test::tree_hash(directory_);
  ASSERT_EQ(::seteuid(4999), 0);
  const int scavenged = run({"scavenge", directory_.c_str(), "--new-point", "--assume-stopped"});
  const auto message = err_.str();
  const int rebuilt = run({"index", "rebuild", directory_.c_str(), "--assume-stopped"});
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(scavenged, kExitRefused);
  EXPECT_EQ(rebuilt, kExitRefused);
  EXPECT_THAT(message, HasSubstr(directory_.string() + ": belongs to 4242:4242"));
  EXPECT_THAT(message, HasSubstr("or as root"));
  EXPECT_EQ(test::tree_hash(directory_), before);
}

}  // namespace
}  // namespace verger::tool
