// What a run says about itself: log lines and events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/index/index_map.h"
#include "engine/scavenge/scavenge_job.h"
#include "tests/support/database/database_builder.h"

namespace verger::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

class Lines : public Log {
 public:
  void write(LogLevel level, std::string_view message, std::span<const LogField>) override {
    (level == LogLevel::kDebug ? debug_lines : info_lines).emplace_back(message);
  }
  std::vector<std::string> debug_lines, info_lines;
};

struct Tables : scavenge::ScavengeEvents {
  void table_scavenged(const scavenge::TableScavenged& table) override {
    order.emplace_back(table.level, table.index);
  }
  std::vector<std::pair<int, int>> order;
};

StreamHash hash_of_b_as_a(std::string_view name) {
  return index::hash_stream(name == "b" ? "a" : name);
}

class RunReport : public testing::Test {
 protected:
  RunReport() {
    options_.hash = &hash_of_b_as_a;
    options_.chunk_size = 4096;
  }
  void scavenge(DatabaseBuilder& builder, const streams::ScavengePoint& point,
                scavenge::ScavengeOptions options = {}) {
    auto& index = builder.database().stream_index();
    auto state =
        scavenge::ScavengeState::open(files_, index.directory(), options_.hash, options.state);
    ASSERT_TRUE(state) << state.error().message;
    scavenge::ScavengeJob job({builder.database().transaction_log(), index, files_, builder.clock(),
                               builder.random(), lines_},
                              *std::move(state), point, options, tables_);
    for (;;) {
      const auto step = job.step(Budget{});
      ASSERT_TRUE(step) << step.error().message;
      if (step->kind == StepOutcome::Kind::kDone) {
        return;
      }
    }
  }

  MemoryFileSystem files_;
  BuilderOptions options_;
  Lines lines_;
  Tables tables_;
};

TEST_F(RunReport, CountsEachChunkAndNamesCollisions) {
  DatabaseBuilder builder(files_, "/db", options_);
  builder.metadata("a", R"({"$maxCount":1})");
  builder.write("a", 3);
  builder.write("b");
  builder.write("gone");
  builder.hard_delete("gone");
  scavenge(builder, builder.point());
  EXPECT_THAT(lines_.debug_lines,
              Contains(StartsWith("SCAVENGING: accumulated 8 records in chunk 0: 6 originals, 1 "
                                  "metadatas, 1 tombstones")));
  EXPECT_THAT(lines_.info_lines,
              Contains("SCAVENGING: the streams \"a\" and \"b\" have the same hash"));
  std::vector<std::string> known;
  std::ranges::copy_if(lines_.debug_lines, std::back_inserter(known), [](const auto& line) {
    return line.find("share their hash") != std::string::npos;
  });
  EXPECT_THAT(known,
              testing::ElementsAre("SCAVENGING: 0 streams are known to share their hash",
                                   "SCAVENGING: 2 streams are known to share their hash: a, b",
                                   "SCAVENGING: 2 streams are known to share their hash: a, b"));
}

TEST_F(RunReport, TellsTheWeightOfEachChunkWithoutBeingAsked) {
  DatabaseBuilder builder(files_, "/db", options_);
  builder.metadata("a", R"({"$maxCount":1})");
  builder.write("a", 3);
  scavenge(builder, builder.point());
  EXPECT_THAT(lines_.info_lines,
              Contains(StartsWith("SCAVENGING: executing chunk-000000.000000 with weight 4,")));
  builder.write("a");
  scavenge(builder, builder.point(9));
  EXPECT_THAT(lines_.info_lines, Contains(AllOf(StartsWith("SCAVENGING: skipped chunk-00000"),
                                                HasSubstr(" with weight 6, threshold 9"))));
}

TEST_F(RunReport, NamesEachRecordThatGoesWithItsTombstone) {
  DatabaseBuilder builder(files_, "/db", options_);
  const auto event = builder.write("gone");
  const auto tombstone = builder.hard_delete("gone");
  scavenge::ScavengeOptions options;
  options.unsafe_ignore_hard_delete = true;
  scavenge(builder, builder.point(), options);
  for (const auto position : {event.position, tombstone.position}) {
    EXPECT_THAT(lines_.info_lines,
                Contains(HasSubstr(fmt::format("stream \"gone\" at position {}:", position))));
  }
}

TEST_F(RunReport, GoesThroughTheTablesFromTheNewestToTheOldest) {
  options_.max_mem_table_size = 4;
  DatabaseBuilder builder(files_, "/db", options_);
  builder.write("c", 4);
  builder.close();
  // From now on nothing is merged.
  auto map = index::load_index_map(files_, "/db/index");
  ASSERT_TRUE(map) << map.error().message;
  map->max_auto_merge_level = 0;
  ASSERT_TRUE(index::save_index_map(files_, "/db/index", *map, builder.random()));
  builder.open();
  builder.metadata("c", R"({"$maxCount":1})");
  for (int n = 0; n < 2; ++n) {
    builder.write("c", 4);
  }
  scavenge(builder, builder.point());
  EXPECT_THAT(tables_.order,
              testing::ElementsAre(std::pair(0, 2), std::pair(0, 1), std::pair(0, 0)));
}

}  // namespace
}  // namespace verger::test
