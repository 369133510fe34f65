#include <gtest/gtest.h>

#include "tests/support/database/database_builder.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

TEST(Merge, LeavesChunksThatAreNotCommitted) {
  MemoryFileSystem built;
  BuilderOptions options;
  options.chunk_size = 4096;
  ScavengeRun run;
  run.chunk_size = options.chunk_size;
  {
    DatabaseBuilder builder(built, "/db", options);
    builder.metadata("a", R"({"$maxCount":1})");
    while (builder.write("a").end < LogPosition(4096)) {
    }
    run.point = builder.point();  // which ends the second chunk
    builder.write("b");
    ASSERT_TRUE(builder.database().transaction_log().complete_chunk());
    builder.write("b");
  }
  const auto chunks_left = [&](std::optional<LogPosition> committed) {
    const auto files = built.clone();
    run.committed = committed;
    const auto result = run_scavenge(*files, "/db", run);
    EXPECT_TRUE(result) << result.error().message;
    return take_snapshot(*files, "/db").chunks.size();
  };
  EXPECT_EQ(chunks_left(std::nullopt), 2U) << "0-2, and the one that is written to";
  EXPECT_EQ(chunks_left(LogPosition(3 * 4096)), 2U);
  EXPECT_EQ(chunks_left(LogPosition(3 * 4096 - 1)), 3U) << "0-1, 2";
}

}  // namespace
}  // namespace verger::test
