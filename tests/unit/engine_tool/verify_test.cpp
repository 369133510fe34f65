// What verify finds, and that threads do not change it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "engine/base/memory_file_system.h"
#include "engine/index/bloom_filter.h"
#include "engine/log/chunk.h"
#include "engine/tool/program.h"
#include "engine/tool/workload.h"
#include "tests/support/database/database_builder.h"

namespace verger::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Verify : public ::testing::Test {
 protected:
  Verify() {
    Workload workload{.events = 3'000, .streams = 40, .chunk_size = 100'000};
    workload.existence_filter_size = 20'000;
    const auto made = generate_workload(disk, "/db", workload, null_log(), [](std::uint64_t) {});
    EXPECT_TRUE(made) << made.error().message;
    EXPECT_GT(made->chunks, 5U);
  }

  int run(const char* threads) {
    out.str("");
    SeededRandom random(3);
    ToolContext tool{disk, system_clock(), random, null_log(), out, err};
    const char* arguments[] = {"verger-db", "verify", "/db", "--threads", threads};
    return run_program(5, arguments, tool);
  }
  void flip(const Path& path, std::uint64_t offset) {
    ASSERT_TRUE(disk.set_read_only(path, false));
    auto file = disk.open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(file) << file.error().message;
    std::byte one[1];
    ASSERT_TRUE((*file)->read_exact(offset, one));
    one[0] ^= std::byte{0x40};
    ASSERT_TRUE((*file)->write_at(offset, one));
  }
  Path table() {
    for (const auto& entry : *disk.list("/db/index")) {
      if (Uuid::parse(entry.name)) {
        return Path("/db/index") / entry.name;
      }
    }
    return {};
  }

  MemoryFileSystem disk;
  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(Verify, FindsASoundDatabaseSoundWithAnyNumberOfThreads) {
  for (const auto* threads : {"1", "2", "5", "16"}) {
    EXPECT_EQ(run(threads), kExitDone) << out.str();
    EXPECT_THAT(out.str(), HasSubstr("3,001 entries, 3,001 events"));
  }
}

TEST_F(Verify, NamesFileAndOffsetOfEveryDamage) {
  flip("/db/chunk-000001.000000", log::kChunkHeaderSize);           // a length
  flip("/db/chunk-000004.000000", log::kChunkHeaderSize + 50'000);  // somewhere
  flip(table(), 128 + 24 * 1000 + 16);                              // a position
  ASSERT_EQ(run("1"), kExitFailed);
  const auto alone = out.str();
  EXPECT_THAT(alone, HasSubstr("DAMAGE: /db/chunk-000001.000000 at 128:"));
  EXPECT_THAT(alone, HasSubstr("DAMAGE: /db/chunk-000004.000000 at "));
  EXPECT_THAT(alone, HasSubstr(fmt::format("DAMAGE: {} at {}:", table().string(), 128 + 24'000)));
  EXPECT_THAT(alone, HasSubstr("points to log position"));
  EXPECT_THAT(alone, HasSubstr("is not in the index; rebuild it"));
  EXPECT_EQ(run("4"), kExitFailed);
  EXPECT_EQ(out.str().substr(out.str().rfind("damage found")),
            alone.substr(alone.rfind("damage found")));
}

TEST_F(Verify, LooksAtTheLinesOfFilters) {
  auto bloom = table();
  bloom += ".bloomfilter";
  const Path existence = "/db/index/stream-existence/streamExistenceFilter.dat";
  for (const auto& path : {bloom, existence}) {
    auto file = disk.open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->write_at(128, Bytes(64, std::byte{0x11})));
  }
  ASSERT_EQ(run("2"), kExitFailed);
  for (const auto& path : {bloom, existence}) {
    EXPECT_THAT(out.str(), HasSubstr("DAMAGE: " + path.string() +
                                     " at 128: 1 of its lines do not match their checksum"));
  }
  EXPECT_THAT(out.str(), HasSubstr("damage found in 2 places"));
}

TEST_F(Verify, MissesStreamsInAnExistenceFilterThatSaysItHasThem) {
  const Path directory = "/db/index/stream-existence";
  index::BloomBuilder empty(20'000);
  ASSERT_TRUE(write_file_durably(disk, directory / "streamExistenceFilter.dat", empty.finish()));
  ASSERT_EQ(run("1"), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("to a server it does not exist"));
  EXPECT_THAT(out.str(), HasSubstr("more of the kind \"stream missing in the existence filter\""));
  // A server that starts with this checkpoint makes the filter anew.
  ASSERT_TRUE(
      write_file_durably(disk, directory / "streamExistenceFilter.chk", Bytes(8, std::byte{0xFF})));
  EXPECT_EQ(run("1"), kExitDone) << out.str();
}

TEST_F(Verify, CountsWhatWouldFillPages) {
  // Without its entries: the table of another database.
  Workload other{.events = 3'000, .streams = 40, .seed = 9, .chunk_size = 100'000};
  other.existence_filter_size = 20'000;
  ASSERT_TRUE(generate_workload(disk, "/other", other, null_log(), [](std::uint64_t) {}));
  const auto mine = table();
  for (const auto& entry : *disk.list("/other/index")) {
    if (Uuid::parse(entry.name)) {
      ASSERT_TRUE(disk.rename(Path("/other/index") / entry.name, mine));
    }
  }
  EXPECT_EQ(run("3"), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("more of the kind \"event without index entry\""));
  EXPECT_THAT(out.str(), HasSubstr("more of the kind \"wrong index entry\""));
  EXPECT_THAT(out.str(), Not(HasSubstr("no damage")));
}

}  // namespace
}  // namespace verger::tool
