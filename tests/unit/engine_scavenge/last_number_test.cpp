// The last event number of a stream that is kept by its hash, when another stream has the same one
// but no record before the scavenge point.
#include <gtest/gtest.h>

#include "engine/scavenge/index_view.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

/// Two streams with one hash, and two metastreams.
StreamHash hash_of_late_streams(std::string_view name) {
  return index::hash_stream(name == "late" ? "kept" : name == "late-too" ? "$$gone" : name);
}

class LastNumber : public testing::TestWithParam<std::uint64_t> {
 protected:
  void build(const std::function<void(DatabaseBuilder&)>& write) {
    BuilderOptions options;
    options.chunk_size = kChunkSize;
    options.max_mem_table_size = GetParam();
    options.hash = &hash_of_late_streams;
    DatabaseBuilder builder(files_, "/db", options);
    write(builder);
    tables_ = builder.database().stream_index().tables().size();
    run_.chunk_size = kChunkSize;
    run_.max_mem_table_size = 1000;
    run_.hash = options.hash;
  }
  bool has_record(const streams::WriteOutcome& write) {
    const auto database = open_database(files_, "/db", run_, log::Access::kReadOnly).value();
    return database->transaction_log().has_record_at(write.position).value();
  }

  static constexpr std::int32_t kChunkSize = 4096;
  MemoryFileSystem files_;
  ScavengeRun run_;
  std::size_t tables_ = 0;
};

TEST_P(LastNumber, IsNotHiddenByAStreamThatBeginsBehindThePoint) {
  std::vector<streams::WriteOutcome> kept;
  build([&](DatabaseBuilder& builder) {
    builder.metadata("kept", R"({"$maxCount":1})");
    for (int n = 0; n < 3; ++n) {
      kept.push_back(builder.write("kept"));
    }
    run_.point = builder.point();
    builder.write("late", 2);
    builder.write("late", 2);
  });
  ASSERT_EQ(tables_, GetParam() == 9 ? 1U : 0U);
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(has_record(kept[0]));
  EXPECT_FALSE(has_record(kept[1]));
  EXPECT_TRUE(has_record(kept[2]));
}

TEST_P(LastNumber, OfADeletedStreamsMetadataIsFoundAllTheSame) {
  streams::WriteOutcome last{};
  build([&](DatabaseBuilder& builder) {
    builder.metadata("gone", R"({"$maxCount":5})");
    builder.metadata("gone", R"({"$maxCount":6})");
    builder.write("filler", 1, 3800);  // the last record gets another chunk
    last = builder.metadata("gone", R"({"$maxCount":7})");
    builder.hard_delete("gone");
    run_.point = builder.point();
    builder.write("late-too", 4);
  });
  ASSERT_EQ(tables_, GetParam() == 9 ? 1U : 0U);
  ASSERT_GE(last.position, LogPosition(kChunkSize));
  run_.options.stop_after = scavenge::StopAfter{.stage = scavenge::Stage::kAccumulating, .nth = 0};
  ASSERT_EQ(run_scavenge(files_, "/db", run_).error().code, Errc::kCancelled);
  EXPECT_EQ(read_state(files_, "/db/index").at("ChunkWeights"),
            (std::vector<std::string>{"0 | 4.0",
                                      fmt::format("{} | 2.0", last.position.value() / kChunkSize)}))
      << "two replaced records, and the last one";
}

// In memory, and in one table that is written with the last event.
INSTANTIATE_TEST_SUITE_P(Index, LastNumber, testing::Values(1000U, 9U));

}  // namespace
}  // namespace verger::test
