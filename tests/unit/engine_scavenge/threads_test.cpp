// What a scavenge leaves does not depend on how many threads there are, nor on whether they work
// ahead, nor on how much of what was accumulated is stored at once: chunks and index byte by byte,
// and the rows of scavenging.db.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/base/random.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"
#include "tests/unit/engine_scavenge/colliding_hash.h"

namespace verger::test {
namespace {

using Files = std::map<std::string, Bytes>;

Files files_below(FileSystem& files, const Path& directory) {
  Files all;
  for (const auto& entry : value(files.list(directory))) {
    const auto path = directory / entry.name;
    if (entry.is_directory) {
      all.merge(files_below(files, path));
    } else if (entry.name.find("scavenging.db") == std::string::npos) {
      all[path.string()] = value(read_file(files, path));
    }
  }
  return all;
}

/// Streams that collide, limits that change, tombstones, transactions, several chunks.
class RandomDatabase {
 public:
  RandomDatabase(FileSystem& files, std::uint64_t seed) : random_(seed) {
    options_.seed = seed;
    options_.chunk_size = 8192;
    options_.max_mem_table_size = 50;
    options_.hash = scavenge::colliding_hash;
    run_.chunk_size = options_.chunk_size;
    run_.max_mem_table_size = options_.max_mem_table_size;
    run_.hash = options_.hash;
    DatabaseBuilder builder(files, "/db", options_);
    const auto end = LogPosition(static_cast<std::int64_t>(5 + random_.below(8)) * 8192);
    for (auto written = LogPosition(0); written < end;) {
      written = write_some(builder);
    }
    run_.point = builder.point();
    builder.write("a");
  }
  [[nodiscard]] const ScavengeRun& run() const { return run_; }

 private:
  LogPosition write_some(DatabaseBuilder& builder) {
    // Few enough to be met often; those of the same number collide.
    const auto name = fmt::format("s{}|{}", random_.below(12), random_.below(3));
    switch (random_.below(8)) {
      case 0:
        return builder.metadata(name, fmt::format(R"({{"$maxCount":{}}})", 1 + random_.below(4)))
            .end;
      case 1:
        return builder.metadata(name, fmt::format(R"({{"$tb":{}}})", random_.below(6))).end;
      default: {
        const auto count = 1 + static_cast<int>(random_.below(3));
        return builder.write(name, count, 32 + random_.below(200)).end;
      }
    }
  }

  SeededRandom random_;
  BuilderOptions options_;
  ScavengeRun run_;
};

TEST(Threads, LeaveTheSameBytes) {
  std::uint64_t collisions = 0;
  std::uint64_t merged = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    MemoryFileSystem before;
    const RandomDatabase database(before, seed);
    std::optional<Files> expected;
    StateRows rows;
    for (const int threads : {1, 2, 3, 4}) {
      for (const bool ahead : {false, true}) {
        SCOPED_TRACE(fmt::format("seed {}, {} threads, ahead: {}", seed, threads, ahead));
        const auto files = before.clone();
        auto run = database.run();
        run.options.threads = threads;
        run.options.hash_in_background = ahead;
        if (threads % 2 == 0) {
          run.options.accumulation_batch = 1 + seed % 5;
        }
        run.step_units = 1 + static_cast<std::uint32_t>(seed) * 13;
        const auto runner = scavenge::make_thread_runner(threads);
        run.runner = runner.get();
        const auto result = run_scavenge(*files, "/db", run);
        ASSERT_TRUE(result) << result.error().message;
        auto left = files_below(*files, "/db");
        if (!expected) {
          expected = std::move(left);
          rows = read_state(*files, "/db/index");
          collisions += rows.at("HashCollisions").size();
          merged += result->progress.groups_merged;
          EXPECT_GT(result->progress.records_discarded, 0U);
          continue;
        }
        EXPECT_EQ(left, *expected);
        EXPECT_EQ(read_state(*files, "/db/index"), rows);
      }
    }
  }
  EXPECT_GT(collisions, 0U);
  EXPECT_GT(merged, 0U);
}

TEST(Threads, EndAtTheSameErrorWhereRecordsCannotBeScavenged) {
  MemoryFileSystem before;
  BuilderOptions options;
  options.chunk_size = 8192;
  ScavengeRun run;
  run.chunk_size = options.chunk_size;
  {
    DatabaseBuilder builder(before, "/db", options);
    while (builder.write("a").end < LogPosition(2 * 8192)) {
    }
    builder.transaction("$$a", 1);
    while (builder.write("a").end < LogPosition(5 * 8192)) {
    }
    run.point = builder.point();
    builder.write("a");
  }
  std::optional<std::string> message;
  for (const bool ahead : {false, true}) {
    const auto files = before.clone();
    run.options.hash_in_background = ahead;
    const auto result = run_scavenge(*files, "/db", run);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::kUnsupported);
    EXPECT_EQ(result.error().message, message.value_or(result.error().message));
    message = result.error().message;
    EXPECT_EQ(read_state(*files, "/db/index").at("ChunkTimeStampRanges").size(), 2U)
        << "the two chunks before it are accumulated";
  }
}

}  // namespace
}  // namespace verger::test
