// What a scavenge reads is compared with its checksum before anything is done by it; and a stop is
// never far away.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using testing::HasSubstr;

/// 0: in the stepping thread; otherwise in the background, with so many threads.
class Checksums : public testing::TestWithParam<int> {
 protected:
  Checksums() {
    options_.chunk_size = 4096;
    options_.max_mem_table_size = 10;
    run_.chunk_size = options_.chunk_size;
    run_.max_mem_table_size = options_.max_mem_table_size;
    run_.options.hash_in_background = GetParam() > 0;
    run_.options.threads = std::max(GetParam(), 1);
    DatabaseBuilder builder(files_, "/db", options_);
    builder.metadata("a", R"({"$maxCount":9})");
    while (builder.write("a").end < LogPosition(3 * 4096)) {
    }
    run_.point = builder.point();
    builder.write("b");
  }
  void flip(const Path& path, std::size_t offset) {
    auto bytes = value(read_file(files_, path));
    bytes.at(offset) ^= std::byte{1};
    ok(write_file_durably(files_, path, bytes));
  }
  /// Offset of the text in the file.
  std::size_t find(const Path& path, std::string_view text) {
    const auto bytes = value(read_file(files_, path));
    return as_text(bytes).find(text);
  }
  std::map<std::int64_t, std::string> records() {
    std::map<std::int64_t, std::string> result;
    for (auto& chunk : take_snapshot(files_, "/db").chunks) {
      result.merge(chunk.records);
    }
    return result;
  }
  Path oldest_table() {
    const auto opened = value(open_database(files_, "/db", run_, log::Access::kReadOnly));
    return opened->stream_index().tables().back().table->path();
  }

  MemoryFileSystem files_;
  BuilderOptions options_;
  ScavengeRun run_;
};

TEST_P(Checksums, AFlippedBitInMetadataTakesNoEventAlong) {
  const Path chunk = "/db/chunk-000000.000000";
  const auto at = find(chunk, R"("$maxCount":9)") + std::string_view(R"("$maxCount":)").size();
  flip(chunk, at);  // 8
  const auto before = records();
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kCorruption);
  EXPECT_THAT(result.error().message, HasSubstr(chunk.string()));
  EXPECT_EQ(records(), before);
  auto trusting = run_;
  trusting.options.compare_checksums = false;
  EXPECT_TRUE(run_scavenge(*files_.clone(), "/db", trusting));
  flip(chunk, at);
  const auto repaired = run_scavenge(files_, "/db", run_);
  ASSERT_TRUE(repaired) << repaired.error().message;
  EXPECT_GT(repaired->progress.records_discarded, 0U);
}

TEST_P(Checksums, ChunksThatAreComparedAheadStopTheRunAtTheirTurn) {
  run_.options.threads = 2;
  run_.options.hash_in_background = true;
  const Path chunk = "/db/chunk-000002.000000";
  const auto at = find(chunk, R"({"n":)") + 5;
  flip(chunk, at);
  const auto before = records();
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kCorruption);
  EXPECT_THAT(result.error().message, HasSubstr(chunk.string()));
  EXPECT_EQ(records(), before);
  EXPECT_EQ(read_state(files_, "/db/index").at("ChunkTimeStampRanges").size(), 2U)
      << "the two chunks before it are accumulated";
  flip(chunk, at);
  EXPECT_TRUE(run_scavenge(files_, "/db", run_));
}

TEST_P(Checksums, AChunkThatIsReadAgainIsComparedAgain) {
  run_.options.stop_after = {scavenge::Stage::kCalculating, 0};
  ASSERT_EQ(run_scavenge(files_, "/db", run_).error().code, Errc::kCancelled);
  run_.options.stop_after = {};
  const Path chunk = "/db/chunk-000001.000000";
  const auto at = find(chunk, R"({"n":)") + 5;
  flip(chunk, at);
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr(chunk.string()));
  EXPECT_TRUE(value(files_.exists(chunk)));
  flip(chunk, at);
  EXPECT_TRUE(run_scavenge(files_, "/db", run_));
}

TEST_P(Checksums, NoDiscardPointComesFromADamagedTable) {
  const auto table = oldest_table();
  flip(table, 128);  // the number of the first entry
  const auto before = records();
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kCorruption);
  EXPECT_THAT(result.error().message, HasSubstr(table.string()));
  EXPECT_EQ(records(), before);
  const auto state = read_state(files_, "/db/index");
  EXPECT_TRUE(state.at("OriginalStreamDatas").empty());
  EXPECT_TRUE(state.at("ChunkWeights").empty());
}

TEST_P(Checksums, TablesThatAreComparedAheadStopTheRunAtTheirTurn) {
  run_.options.threads = 2;
  run_.options.hash_in_background = true;
  const auto table = oldest_table();
  flip(table, 128);
  const auto before = records();
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kCorruption);
  EXPECT_THAT(result.error().message, HasSubstr(table.string()));
  EXPECT_EQ(records(), before);
  EXPECT_TRUE(read_state(files_, "/db/index").at("OriginalStreamDatas").empty());
  flip(table, 128);
  EXPECT_TRUE(run_scavenge(files_, "/db", run_));
}

TEST_P(Checksums, NoTableIsRewrittenFromADamagedOne) {
  run_.options.stop_after = {scavenge::Stage::kMergingChunks, 0};
  ASSERT_EQ(run_scavenge(files_, "/db", run_).error().code, Errc::kCancelled);
  run_.options.stop_after = {};
  const auto table = oldest_table();
  flip(table, value(read_file(files_, table)).size() - 1);
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr(table.string()));
  EXPECT_TRUE(value(files_.exists(table)));
}

TEST_P(Checksums, GroupsWithADamagedChunkAreNotMerged) {
  run_.options.stop_after = {scavenge::Stage::kExecutingChunks, 0};
  ASSERT_EQ(run_scavenge(files_, "/db", run_).error().code, Errc::kCancelled);
  run_.options.stop_after = {};
  const Path chunk = "/db/chunk-000001.000001";
  ASSERT_TRUE(value(files_.exists(chunk)));
  flip(chunk, value(read_file(files_, chunk)).size() - 1);
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->progress.groups_merged, 0U);
  EXPECT_TRUE(value(files_.exists(chunk)));
}

INSTANTIATE_TEST_SUITE_P(Ways, Checksums, testing::Values(0, 1, 2, 4));

TEST(LargeRecords, DoNotKeepAStopWaiting) {
  constexpr std::size_t kSize = std::size_t{4} << 20U;
  MemoryFileSystem files;
  ScavengeRun run;
  {
    BuilderOptions options;
    options.chunk_size = 48 << 20;
    run.chunk_size = options.chunk_size;
    DatabaseBuilder builder(files, "/db", options);
    builder.metadata("a", R"({"$maxCount":8})");
    for (int n = 0; n < 9; ++n) {
      builder.write("a", 1, kSize);
    }
    run.point = builder.point();
  }
  run.step_units = 1'000'000;
  int steps = 0;
  run.after_step = [&](const scavenge::ScavengeJob& job) {
    steps += job.progress_stage() == scavenge::Stage::kExecutingChunks ? 1 : 0;
    return steps < 2;  // the first one entered the stage
  };
  const auto result = run_scavenge(files, "/db", run);
  ASSERT_FALSE(result) << "the whole chunk was copied in one step";
  EXPECT_EQ(result.error().code, Errc::kCancelled);
  EXPECT_TRUE(value(files.exists("/db/chunk-000000.000000")));
}

}  // namespace
}  // namespace verger::test
