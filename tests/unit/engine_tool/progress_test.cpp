#include "engine/tool/progress.h"

#include <gtest/gtest.h>
#include <sstream>

#include "engine/base/memory_file_system.h"
#include "tests/support/manual_clock.h"

namespace verger::tool {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  MemoryFileSystem disk;
  test::ManualClock clock;
  SeededRandom random{1};
  std::ostringstream out;
  std::ostringstream err;
  ToolContext tool{disk, clock, random, null_log(), out, err};
};

TEST_F(ProgressTest, SaysNothingAboutShortWork) {
  {
    Progress progress(tool, "verify", 100);
    progress.update(50);
  }
  EXPECT_EQ(err.str(), "");
}

TEST_F(ProgressTest, WritesALineOfJsonASecond) {
  Progress progress(tool, "verify", 4'000'000);
  clock.advance_seconds(2);
  progress.update(1'000'000);
  progress.update(1'500'000);
  EXPECT_EQ(err.str(),
            "{\"progress\":\"verify\",\"bytesDone\":1000000,\"bytesTotal\":4000000,"
            "\"bytesPerSecond\":500000,\"secondsLeft\":6}\n");
}

TEST_F(ProgressTest, OnATerminalItIsOneLineThatGoesAway) {
  tool.terminal = true;
  {
    Progress progress(tool, "verify", 4'000'000);
    clock.advance_seconds(2);
    progress.update(1'000'000);
  }
  EXPECT_EQ(err.str(), "\r\x1b[Kverify: 25 %, 500 kB/s, 6 s left\r\x1b[K");
}

}  // namespace
}  // namespace verger::tool
