// Whole commands in-process, on a disk in memory.
#include "engine/tool/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "engine/base/memory_file_system.h"
#include "tests/support/database/database_builder.h"

namespace verger::tool {
namespace {

using ::testing::HasSubstr;

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() : builder(disk, "/db") {}

  int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "verger-db");
    out.str("");
    err.str("");
    ToolContext tool{disk, builder.clock(), builder.random(), null_log(), out, err};
    return run_program(static_cast<int>(arguments.size()), arguments.data(), tool);
  }

  MemoryFileSystem disk;
  test::DatabaseBuilder builder;
  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(ProgramTest, VerifyFindsWhatTheBuilderWritesSound) {
  for (int i = 0; i < 60; ++i) {
    builder.write(fmt::format("s-{}", i % 5), 1 + i % 3, 100);
  }
  builder.transaction("t", 3);
  builder.transaction("t", 2, /*open=*/true);
  builder.hard_delete("s-1");
  builder.point();
  builder.write("s-2");
  builder.close();
  EXPECT_EQ(run({"verify", "/db"}), kExitDone) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("no damage found"));
}

TEST_F(ProgramTest, VerifyFindsAnEventThatTheIndexLacks) {
  builder.write("s", 3);
  builder.write("t", 30);
  const auto table = builder.database().stream_index().tables().front().table->path();
  builder.close();
  // The hash of the first entry: the event is then found under another stream's.
  auto file = disk.open(table, OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  const std::byte wrong{0xFF};
  ASSERT_TRUE((*file)->write_at(128 + 15, {&wrong, 1}));
  EXPECT_EQ(run({"verify", "/db"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("is not in the index"));
  EXPECT_THAT(out.str(), HasSubstr("points to log position"));
}

TEST_F(ProgramTest, CommandsNameWhatRepairsADamagedIndex) {
  builder.write("s", 30);
  builder.close();
  const std::byte wrong{'x'};
  auto file = disk.open("/db/index/indexmap", OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write_at(40, {&wrong, 1}));
  for (const char* command : {"info", "stats", "estimate", "digest"}) {
    EXPECT_EQ(run({command, "/db"}), kExitFailed) << command;
    EXPECT_THAT(err.str(), HasSubstr("verger-db index rebuild"));
    EXPECT_THAT(err.str(), HasSubstr("/db/index/indexmap"));
  }
  EXPECT_EQ(run({"verify", "/db"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("verger-db index rebuild"));
  EXPECT_EQ(run({"index", "rebuild", "/db"}), kExitDone) << err.str();
  EXPECT_EQ(run({"verify", "/db"}), kExitDone) << out.str();
}

TEST_F(ProgramTest, VerifyTellsOfAnIndexThatANodeWouldThrowAway) {
  builder.write("s", 30);
  builder.close();
  const Bytes none(8);
  ASSERT_TRUE((*disk.open("/db/chaser.chk", OpenMode::kReadWrite))->write_at(0, none));
  EXPECT_EQ(run({"verify", "/db"}), kExitDone) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("throws the index away"));
}

TEST_F(ProgramTest, DiffFindsTheRecordThatDiffers) {
  builder.write("s", 3);
  builder.close();
  test::DatabaseBuilder other(disk, "/other");
  other.write("s", 3);
  const auto extra = other.write("s");
  other.close();
  EXPECT_EQ(run({"diff", "/db", "/db"}), kExitDone);
  EXPECT_EQ(run({"diff", "/db", "/other"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr(fmt::format("log position {}:\nonly B has", extra.position)));
  const auto to = std::to_string(extra.position.value());
  EXPECT_EQ(run({"diff", "/db", "/other", "--to", to.c_str()}), kExitDone);
}

TEST_F(ProgramTest, ADirectoryWithoutADatabaseIsWrongUsage) {
  builder.close();
  ASSERT_TRUE(disk.make_directories("/empty"));
  for (const char* directory : {"/empty", "/is/not/there"}) {
    for (const char* command : {"verify", "info", "records", "stats", "digest", "estimate"}) {
      EXPECT_EQ(run({command, directory}), kExitUsage) << command;
      EXPECT_EQ(out.str(), "");
      EXPECT_THAT(err.str(), HasSubstr("give the directory that holds the chunk files"));
    }
    EXPECT_EQ(run({"scavenge", directory, "--new-point"}), kExitUsage);
    EXPECT_EQ(run({"index", "rebuild", directory}), kExitUsage);
  }
  EXPECT_TRUE(disk.list("/empty")->empty());
}

TEST_F(ProgramTest, DigestSaysThatChecksumsWereNotCompared) {
  builder.write("s");
  builder.close();
  EXPECT_EQ(run({"digest", "/db"}), kExitDone);
  EXPECT_THAT(out.str(), HasSubstr("not compared: `verger-db verify`"));
  EXPECT_EQ(run({"digest", "/db", "-o", "json"}), kExitDone);
  EXPECT_THAT(out.str(), HasSubstr("\"checksumsCompared\":false"));
}

TEST_F(ProgramTest, ExitCodesFollowTheKindOfError) {
  EXPECT_EQ(exit_code_of({Errc::kRefused, ""}), 2);
  EXPECT_EQ(exit_code_of({Errc::kCancelled, ""}), 3);
  EXPECT_EQ(exit_code_of({Errc::kUnknownOutcome, ""}), 4);
  EXPECT_EQ(exit_code_of({Errc::kCorruption, ""}), 1);
  EXPECT_EQ(exit_code_of({Errc::kInvalidArgument, ""}), 64);
}

TEST_F(ProgramTest, OutputThatCannotBeWrittenIsAFailure) {
  builder.write("s");
  builder.close();
  out.setstate(std::ios::badbit);
  ToolContext tool{disk, builder.clock(), builder.random(), null_log(), out, err};
  const char* arguments[] = {"verger-db", "info", "/db"};
  EXPECT_EQ(run_program(3, arguments, tool), kExitFailed);
}

}  // namespace
}  // namespace verger::tool
