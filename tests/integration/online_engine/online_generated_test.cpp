// Databases of chance: chunks scavenged beside the open database, switched in, and the rest by the
// scavenge that continues from there, give what one scavenge gives. That the engine's own gives
// what a server's gives is tested on the server's databases (tests/integration/scavenge).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "engine/online/shadow.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/online/online_run.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

class OnlineGenerated : public testing::TestWithParam<std::uint64_t> {
 protected:
  OnlineGenerated() {
    options_.chunk_size = 4096;
    options_.max_mem_table_size = 16;
    options_.seed = GetParam();
    options_.seconds_per_write = 60;
    run_.chunk_size = options_.chunk_size;
    run_.max_mem_table_size = options_.max_mem_table_size;
    DatabaseBuilder builder(files_, "/db", options_);
    fill(builder);
    point_ = builder.point();
    write_some(builder, 5);
    builder.close();
  }

  std::string any_stream() { return fmt::format("s{}", random_.below(12)); }
  void write_some(DatabaseBuilder& builder, int times) {
    for (int n = 0; n < times; ++n) {
      const auto stream = any_stream();
      if (gone_.contains(stream)) {
        continue;
      }
      builder.write(stream, 1 + static_cast<int>(random_.below(3)), 20 + random_.below(300));
    }
  }
  /// Writes, limits of all kinds that change, deletes for a while and for good, transactions.
  void fill(DatabaseBuilder& builder) {
    std::set<std::string> gone;
    std::set<std::string> there;
    for (int n = 0; n < 120; ++n) {
      const auto stream = any_stream();
      if (gone.contains(stream)) {
        continue;
      }
      switch (random_.below(12)) {
        case 0:
          builder.metadata(stream, fmt::format(R"({{"$maxCount":{}}})", 1 + random_.below(4)));
          break;
        case 1:
          builder.metadata(stream,
                           fmt::format(R"({{"$maxAge":{}}})", 60 * (1 + random_.below(60))));
          break;
        case 2:
          builder.metadata(stream, fmt::format(R"({{"$tb":{}}})", random_.below(6)));
          break;
        case 3:
          builder.transaction(stream, 1 + static_cast<int>(random_.below(3)));
          there.insert(stream);
          break;
        case 4:
          if (there.contains(stream) && random_.below(4) == 0) {
            builder.soft_delete(stream);
            there.erase(stream);
          }
          break;
        case 5:
          if (there.contains(stream) && gone.size() < 4 && random_.below(3) == 0) {
            builder.hard_delete(stream);
            gone.insert(stream);
          }
          break;
        default:
          builder.write(stream, 1 + static_cast<int>(random_.below(4)), 20 + random_.below(300));
          there.insert(stream);
      }
    }
    gone_ = std::move(gone);
  }

  BuilderOptions options_;
  ScavengeRun run_;
  SeededRandom random_{GetParam() * 7'919 + 1};
  MemoryFileSystem files_;
  streams::ScavengePoint point_;
  std::set<std::string> gone_;
};

TEST_P(OnlineGenerated, GivesWhatOneScavengeGives) {
  const auto own = files_.clone();
  value(run_scavenge(*own, "/db", run_));
  const auto whole = take_snapshot(*own, "/db");

  auto live = value(open_database(files_, "/db", run_, log::Access::kWrite));
  const auto online = value(run_online(files_, "/db", *live, {.point = point_, .threads = 2}));
  live.reset();
  value(run_scavenge(files_, "/db", run_));
  ok(online_scavenge::remove_shadow(files_, "/db"));
  const auto ours = take_snapshot(files_, "/db");

  EXPECT_FALSE(online.preparation.chunks.empty());
  ASSERT_EQ(ours.chunks.size(), whole.chunks.size());
  for (std::size_t n = 0; n < ours.chunks.size(); ++n) {
    SCOPED_TRACE(ours.chunks[n].start);
    EXPECT_EQ(ours.chunks[n].problem, "");
    EXPECT_EQ(ours.chunks[n].end, whole.chunks[n].end);
    EXPECT_EQ(ours.chunks[n].version, whole.chunks[n].version);
    EXPECT_EQ(ours.chunks[n].file_size, whole.chunks[n].file_size);
    EXPECT_TRUE(ours.chunks[n].records == whole.chunks[n].records);
  }
  EXPECT_TRUE(ours.entries == whole.entries);
  EXPECT_EQ(ours.state, whole.state);
}

INSTANTIATE_TEST_SUITE_P(Seeds, OnlineGenerated, testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace verger::test
