// A run after another one: what it must look at again, although nothing seems to have changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/index/rebuild_job.h"
#include "engine/scavenge/scavenge_job.h"
#include "tests/support/database/database_builder.h"

namespace verger::test {
namespace {

/// Above the weight of any chunk here: records stay where they are, and entries go all the same.
constexpr std::int32_t kNoChunk = 1'000'000;

struct TableCounts : scavenge::ScavengeEvents {
  void table_scavenged(const scavenge::TableScavenged& table) override {
    deleted += table.entries_deleted;
    rewritten += table.scavenged ? 1U : 0U;
  }
  std::uint64_t deleted = 0;
  std::size_t rewritten = 0;
};

class SecondRun : public testing::Test {
 protected:
  /// With `stop_in` stopped there once something of it is stored, and continued by another run.
  TableCounts scavenge(std::optional<scavenge::Stage> stop_in = {}) {
    TableCounts tables;
    const auto point = builder_.point(kNoChunk);
    if (stop_in) {
      scavenge::ScavengeOptions options;
      options.calculation_batch = 1;
      options.stop_after = scavenge::StopAfter{*stop_in, 2};
      EXPECT_EQ(run(point, options, tables), Errc::kCancelled);
    }
    EXPECT_EQ(run(point, {}, tables), std::nullopt);
    return tables;
  }
  /// All entries of the log are there again.
  void rebuild_index() {
    auto& database = builder_.database();
    index::IndexRebuildJob job(database.stream_index(), database.transaction_log());
    for (;;) {
      const auto step = job.step(Budget{});
      ASSERT_TRUE(step) << step.error().message;
      if (step->kind == StepOutcome::Kind::kDone) {
        return;
      }
    }
  }
  std::size_t entries_of(std::string_view stream) {
    return builder_.database()
        .stream_index()
        .range(index::hash_stream(stream), EventNumber(0),
               EventNumber(std::numeric_limits<std::int64_t>::max()), 1'000)
        .value()
        .size();
  }

  MemoryFileSystem files_;
  DatabaseBuilder builder_{files_, "/db", {.max_mem_table_size = 4}};

 private:
  std::optional<Errc> run(const streams::ScavengePoint& point, scavenge::ScavengeOptions options,
                          TableCounts& tables) {
    auto& index = builder_.database().stream_index();
    auto state = scavenge::ScavengeState::open(files_, index.directory(), &index::hash_stream,
                                               options.state);
    EXPECT_TRUE(state) << state.error().message;
    scavenge::ScavengeJob job({builder_.database().transaction_log(), index, files_,
                               builder_.clock(), builder_.random(), null_log()},
                              *std::move(state), point, options, tables);
    for (;;) {
      const auto step = job.step(Budget{});
      if (!step) {
        return step.error().code;
      }
      if (step->kind == StepOutcome::Kind::kDone) {
        return std::nullopt;
      }
    }
  }
};

TEST_F(SecondRun, LeavesTablesAsTheyAre) {
  builder_.metadata("limited", R"({"$maxCount":2})");
  builder_.write("limited", 6);
  builder_.write("kept", 4);
  EXPECT_GT(scavenge().deleted, 0U);
  const auto again = scavenge();
  EXPECT_EQ(again.rewritten, 0U);
  EXPECT_EQ(entries_of("limited"), 2U);
}

TEST_F(SecondRun, RemovesEntriesOfActiveStreamsThatAnIndexBroughtBack) {
  builder_.metadata("limited", R"({"$maxCount":2})");
  builder_.write("limited", 6);
  builder_.write("kept", 4);
  scavenge();
  ASSERT_EQ(entries_of("limited"), 2U);
  rebuild_index();
  ASSERT_EQ(entries_of("limited"), 6U);
  EXPECT_EQ(scavenge().deleted, 4U);
  EXPECT_EQ(entries_of("limited"), 2U);
}

TEST_F(SecondRun, RemovesEntriesOfStreamsThatAreNoLongerCalculated) {
  builder_.metadata("limited", R"({"$maxCount":2})");
  builder_.write("limited", 2);
  builder_.write("gone", 5);
  builder_.hard_delete("gone");
  builder_.metadata("spent", R"({"$tb":3})");
  builder_.write("spent", 5);
  builder_.write("kept", 4);
  scavenge();
  ASSERT_EQ(entries_of("gone"), 1U);
  ASSERT_EQ(entries_of("spent"), 2U);
  rebuild_index();
  ASSERT_EQ(entries_of("gone"), 6U);
  ASSERT_EQ(entries_of("spent"), 5U);
  EXPECT_EQ(scavenge().deleted, 8U);
  EXPECT_EQ(entries_of("gone"), 1U);
  EXPECT_EQ(entries_of("spent"), 2U);
  EXPECT_EQ(entries_of("limited"), 2U);
}

TEST_F(SecondRun, RemovesEntriesOfStreamsThatItsOwnFirstPartCalculated) {
  for (const auto* stream : {"a", "b", "c"}) {
    builder_.metadata(stream, R"({"$maxCount":2})");
    builder_.write(stream, 6);
  }
  scavenge(scavenge::Stage::kCalculating);
  for (const auto* stream : {"a", "b", "c"}) {
    EXPECT_EQ(entries_of(stream), 2U) << stream;
  }
}

TEST_F(SecondRun, RemovesWhatHasGrownBeyondALimitSince) {
  builder_.metadata("limited", R"({"$maxCount":2})");
  builder_.write("limited", 6);
  builder_.metadata("other", R"({"$maxCount":2})");
  builder_.write("other", 2);
  scavenge();
  builder_.write("limited", 1);
  EXPECT_EQ(scavenge().deleted, 1U);
  EXPECT_EQ(entries_of("limited"), 2U);
  EXPECT_EQ(entries_of("other"), 2U);
}

}  // namespace
}  // namespace verger::test
