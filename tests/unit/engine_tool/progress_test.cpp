#include "engine/tool/progress.h"

#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

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
  tool.progress = ProgressStyle::kJson;
  Progress progress(tool, "verify", 4'000'000);
  clock.advance_seconds(2);
  progress.update(1'000'000);
  progress.update(1'500'000);
  EXPECT_EQ(err.str(),
            "{\"progress\":\"verify\",\"unit\":\"bytes\",\"done\":1000000,\"total\":4000000,"
            "\"perSecond\":500000,\"seconds\":2,\"secondsLeft\":6,\"expectedEnd\":\"" +
                format_ticks(Ticks(clock.now().value() + 6 * kTicksPerSecond)) + "\"}\n");
}

TEST_F(ProgressTest, WhatIsNoTerminalGetsNothingUnlessItAsks) {
  for (const auto style : {ProgressStyle::kAuto, ProgressStyle::kNone}) {
    tool.progress = style;
    Progress progress(tool, "verify", 4'000'000);
    clock.advance_seconds(2);
    progress.update(1'000'000);
  }
  EXPECT_EQ(err.str(), "");
}

TEST_F(ProgressTest, AStageOfAScavengeHasItsUnitAndCountsOnlyWhatThisRunDid) {
  tool.progress = ProgressStyle::kJson;
  StageProgress progress(tool);
  scavenge::ScavengeProgress now{.stage = scavenge::Stage::kExecutingChunks, .total = 1000};
  progress.update(now);
  clock.advance_seconds(5);
  now.done = 800;  // an earlier run did
  progress.update(now);
  EXPECT_EQ(err.str(), "");
  clock.advance_seconds(2);
  now.done = 900;
  progress.update(now);
  const auto line = nlohmann::json::parse(err.str());
  EXPECT_EQ(line["progress"], "execute");
  EXPECT_EQ(line["unit"], "bytes");
  EXPECT_EQ(line["perSecond"], 50);
  EXPECT_EQ(line["secondsLeft"], 2);
  err.str("");
  now = {.stage = scavenge::Stage::kCalculating};
  progress.update(now);
  clock.advance_seconds(2);
  progress.update(now);
  EXPECT_EQ(nlohmann::json::parse(err.str())["unit"], "streams");
  EXPECT_FALSE(nlohmann::json::parse(err.str()).contains("expectedEnd"));
}

TEST_F(ProgressTest, OnATerminalItIsOneLineThatGoesAway) {
  tool.terminal = true;
  {
    Progress progress(tool, "verify", 4'000'000);
    clock.advance_seconds(2);
    progress.update(1'000'000);
  }
  EXPECT_EQ(
      err.str(),
      fmt::format("\r\x1b[Kverify: 25 %, 488.3 KiB/s, 6 s left, ends at {} UTC"
                  "\r\x1b[K",
                  format_ticks(Ticks(clock.now().value() + 6 * kTicksPerSecond)).substr(11, 8)));
}

}  // namespace
}  // namespace verger::tool
