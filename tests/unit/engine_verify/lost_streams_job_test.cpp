#include "engine/verify/lost_streams_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/index/index_map.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/database/lose_streams.h"
#include "tests/support/results.h"

namespace verger::verify {
namespace {

constexpr const char* kFilter = "/db/index/stream-existence/streamExistenceFilter.dat";
constexpr const char* kCheckpoint = "/db/index/stream-existence/streamExistenceFilter.chk";

class LostStreams : public ::testing::Test {
 protected:
  LostStreams() { fill("/db"); }
  void fill(const Path& directory) {
    test::DatabaseBuilder builder(disk, directory);
    for (int i = 0; i < 100; ++i) {
      builder.write(fmt::format("stream-{}", i % 7), 1 + i % 3);
    }
  }
  std::int64_t count(std::uint32_t units = 16) {
    LostStreamsJob job(disk, "/db/index");
    while (value(job.step({.units = units})).kind != StepOutcome::Kind::kDone) {
      EXPECT_LE(job.done(), job.total());
    }
    listed = job.listed();
    return job.count();
  }
  void forget_all() { test::lose_all_streams(disk, "/db/index"); }

  MemoryFileSystem disk;
  std::vector<LostStreamsJob::Lost> listed;
};

TEST_F(LostStreams, AreNoneInASoundIndex) { EXPECT_EQ(count(), 0); }

TEST_F(LostStreams, AreCountedOnceEachHoweverManyTablesHaveThem) {
  forget_all();
  const auto lost = count();
  EXPECT_GE(lost, 7);
  EXPECT_EQ(count(1), lost);
  EXPECT_EQ(static_cast<std::int64_t>(listed.size()), lost);
}

TEST_F(LostStreams, OfTablesThatAreMergedMeanwhileAreCounted) {
  forget_all();
  const auto lost = count();
  const auto map = value(index::load_index_map(disk, "/db/index"));
  ASSERT_GT(map.tables.size(), 1U);
  LostStreamsJob job(disk, "/db/index");
  value(job.step({.units = 1}));
  value(job.step({.units = 1}));
  // The second table has another name by now.
  auto merged = map;
  const auto gone = merged.tables[1].file;
  SeededRandom random(1);
  merged.tables[1].file = random.uuid().to_string();
  ok(disk.rename(Path("/db/index") / gone, Path("/db/index") / merged.tables[1].file));
  ok(index::save_index_map(disk, "/db/index", merged, random));
  while (value(job.step({.units = 16})).kind != StepOutcome::Kind::kDone) {
  }
  EXPECT_EQ(job.count(), lost);
}

TEST_F(LostStreams, ThatTheFilterHasBySomeLaterMomentAreNone) {
  const auto good = value(read_file(disk, kFilter));
  forget_all();
  LostStreamsJob job(disk, "/db/index");
  while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
  }
  ASSERT_GT(job.count(), 0);
  const auto lost = job.count();
  ok(job.look_again());
  EXPECT_EQ(job.count(), lost);
  ok(write_file_durably(disk, kFilter, good));
  ok(job.look_again());
  EXPECT_EQ(job.count(), 0);
  EXPECT_TRUE(job.listed().empty());
}

TEST_F(LostStreams, AreNoneWhereTheServerMakesTheFilterAnew) {
  forget_all();
  EXPECT_FALSE(value(existence_filter_is_due(disk, "/db/index")));
  ok(drop_existence_checkpoint(disk, "/db/index"));
  EXPECT_FALSE(value(disk.exists(kCheckpoint)));
  EXPECT_TRUE(value(existence_filter_is_due(disk, "/db/index")));
  EXPECT_EQ(count(), 0);
  ok(drop_existence_checkpoint(disk, "/db/index"));
}

TEST_F(LostStreams, OfAnIndexWithoutAFilterAreNone) {
  ok(disk.remove(kFilter));
  EXPECT_EQ(count(), 0);
  ok(disk.remove("/db/index/indexmap"));
  EXPECT_EQ(count(), 0);
}

}  // namespace
}  // namespace verger::verify
