#include "nodeagent/daemon/detail/slow_disk.h"

#include <fstream>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/temp_directory.h"

namespace verger::agent {
namespace {

class CountingLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view /*message*/,
             std::span<const LogField> /*fields*/) override {
    ++lines;
  }
  int lines = 0;
};

TEST(SlowDisk, IsAsSlowAsTheFileSaysAtThatMoment) {
  const test::TempDirectory directory;
  const auto says = directory.path() / "slow";
  MemoryFileSystem disk;
  SeededRandom random(1);
  CountingLog log;
  SlowDisk slow(disk, says, random, log);
  const auto file = slow.files().open("/a", OpenMode::kCreate).value();
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(log.lines, 0);
  std::ofstream(says) << "1";
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(slow.files().sync_directory("/"));
  EXPECT_EQ(log.lines, 2);
  for (const auto* no_time : {"0", "", "soon"}) {
    std::ofstream(says) << no_time;
    ASSERT_TRUE(file->sync());
    EXPECT_EQ(log.lines, 2) << no_time;
  }
}

}  // namespace
}  // namespace verger::agent
