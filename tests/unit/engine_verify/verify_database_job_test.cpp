// The verification of a database as a job: what it finds is the same in steps of any size, and
// however many files are looked at side by side. What each check finds: tests of `verger-db
// verify`.
#include "engine/verify/verify_database_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "engine/base/memory_file_system.h"
#include "engine/index/ptable.h"
#include "engine/log/chunk.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"

namespace verger::verify {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerifyDatabase : public ::testing::Test {
 protected:
  VerifyDatabase() {
    test::DatabaseBuilder builder(disk, "/db");
    for (int i = 0; i < 200; ++i) {
      builder.write(fmt::format("stream-{}", i % 7), 1 + i % 3,
                    static_cast<std::size_t>(100 + 37 * (i % 11)));
    }
    builder.transaction("stream-t", 3);
    builder.close();
  }

  /// What a whole run finds, one line each.
  std::vector<std::string> run(std::uint32_t units = 4096, std::size_t lanes = 1,
                               scavenge::ParallelRunner& runner = scavenge::inline_runner()) {
    VerifyDatabaseJob job(disk,
                          {.directory = "/db",
                           .index_directory = {},
                           .scratch = "/tmp",
                           .events_in_memory = events_in_memory,
                           .lanes = lanes},
                          clock, random, null_log(), runner);
    std::uint64_t bytes = 0;
    for (steps = 1;; ++steps) {
      const auto outcome = value(job.step({.units = units}));
      EXPECT_GE(job.progress().bytes, bytes);
      bytes = job.progress().bytes;
      EXPECT_LE(job.progress().done, job.progress().total);
      if (outcome.kind == StepOutcome::Kind::kDone) {
        break;
      }
    }
    totals = job.totals();
    std::vector<std::string> lines;
    for (const auto& finding : job.findings().all()) {
      lines.push_back(fmt::format("{} {} {}: {}", finding.damage ? "damage" : "note", finding.file,
                                  finding.offset ? fmt::to_string(*finding.offset) : "-",
                                  finding.text));
    }
    return lines;
  }

  void flip(const Path& path, std::uint64_t offset) {
    auto content = value(read_file(disk, path));
    content.at(offset) ^= std::byte{0x40};
    ok(disk.set_read_only(path, false));
    ok(write_file_durably(disk, path, content));
  }

  /// Files that were not removed.
  bool scratch_is_used() { return value(disk.exists("/tmp")) && !value(disk.list("/tmp")).empty(); }

  MemoryFileSystem disk;
  test::ManualClock clock;
  SeededRandom random{5};
  VerifyTotals totals;
  std::uint64_t events_in_memory = VerifyDatabaseOptions{}.events_in_memory;
  int steps = 0;
};

TEST_F(VerifyDatabase, FindsNothingInASoundOne) {
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_GT(totals.chunk_files, 3U);
  EXPECT_GT(totals.tables, 1U);
  EXPECT_GT(totals.records, totals.events);
  EXPECT_EQ(totals.entries_without_record + totals.records_without_entry, 0U);
  EXPECT_FALSE(scratch_is_used());
}

TEST_F(VerifyDatabase, ComparesEveryEntryOnceInStepsOfAnySize) {
  std::uint64_t entries = 0;
  for (const auto& table : value(disk.list("/db/index"))) {
    if (const auto opened = index::PTable::open(disk, "/db/index/" + table.name, 16); opened) {
      entries += (*opened)->count();
    }
  }
  for (const std::uint64_t in_memory : {std::uint64_t{16}, events_in_memory}) {
    events_in_memory = in_memory;
    for (const std::uint32_t units : {1U, 2U, 7U, 4096U}) {
      for (const std::size_t lanes : {1U, 3U}) {
        EXPECT_THAT(run(units, lanes), IsEmpty());
        EXPECT_EQ(totals.entries, entries) << units << ", " << lanes;
      }
    }
  }
}

TEST_F(VerifyDatabase, SortsMoreEventsThanFitIntoMemoryInADirectoryThatItMakes) {
  events_in_memory = 16;
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_GT(totals.events, 100U);
  EXPECT_THAT(run(7, 3), IsEmpty());
  EXPECT_TRUE(value(disk.exists("/tmp")));
  EXPECT_FALSE(scratch_is_used());
}

TEST_F(VerifyDatabase, AFullScratchDirectoryIsNoDamage) {
  disk.set_free_space(0);
  VerifyDatabaseJob job(
      disk, {.directory = "/db", .index_directory = {}, .scratch = "/tmp", .events_in_memory = 16},
      clock, random, null_log());
  Result<StepOutcome> outcome = StepOutcome{StepOutcome::Kind::kMore};
  while (outcome && outcome->kind == StepOutcome::Kind::kMore) {
    outcome = job.step({.units = 4096});
  }
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kNoSpace);
  EXPECT_THAT(outcome.error().message, HasSubstr("/tmp/"));
  EXPECT_THAT(job.findings().all(), IsEmpty());
}

TEST_F(VerifyDatabase, FindsTheSameInStepsOfAnySizeAndBySeveralThreads) {
  flip("/db/chunk-000001.000000", log::kChunkHeaderSize);
  flip("/db/chunk-000002.000000", log::kChunkHeaderSize + 5'000);
  std::filesystem::path table;
  for (const auto& entry : value(disk.list("/db/index"))) {
    if (Uuid::parse(entry.name)) {
      table = Path("/db/index") / entry.name;
    }
  }
  flip(table, 128 + 16);
  const auto found = run();
  const auto few = steps;
  EXPECT_THAT(found, Contains(HasSubstr("damage /db/chunk-000001.000000 128:")));
  EXPECT_THAT(found, Contains(HasSubstr("damage /db/chunk-000002.000000")));
  EXPECT_THAT(found, Contains(HasSubstr("damage " + table.string() + " 128:")));
  EXPECT_THAT(found, Contains(HasSubstr("the file says")));
  EXPECT_EQ(run(1), found);
  EXPECT_GT(steps, 20 * few);
  EXPECT_EQ(run(7, 3), found);
  const auto threads = scavenge::make_thread_runner(3);
  EXPECT_EQ(run(100, 3, *threads), found);
}

TEST_F(VerifyDatabase, ReportsACheckpointFarBehindTheLogOnce) {
  Bytes far(sizeof(std::int64_t));
  store_le<std::int64_t>(far.data(), std::numeric_limits<std::int64_t>::max() - 1);
  ok(write_file_durably(disk, "/db/writer.chk", far));
  const auto found = run();
  EXPECT_THAT(found, Contains(HasSubstr("are missing; is writer.chk (9223372036854775806)")));
  EXPECT_LT(found.size(), 20U);
}

TEST_F(VerifyDatabase, SaysThatTheIndexWasNotComparedWhereTheLogCannotBeOpened) {
  ok(disk.remove("/db/chunk-000001.000000"));
  const auto found = run();
  EXPECT_THAT(found, Contains(HasSubstr("chunk 1 is missing")));
  EXPECT_THAT(found, Contains(HasSubstr("index and log are not compared")));
}

TEST_F(VerifyDatabase, RefusesAnotherChunkSizeThanThatOfTheFiles) {
  VerifyDatabaseJob job(
      disk, {.directory = "/db", .index_directory = {}, .chunk_size = 4096, .scratch = "/tmp"},
      clock, random, null_log());
  EXPECT_EQ(job.step({}).error().code, Errc::kInvalidArgument);
}

TEST_F(VerifyDatabase, IsAbandonedAtAnyStep) {
  for (int stop = 1;; ++stop) {
    VerifyDatabaseJob job(disk, {.directory = "/db", .index_directory = {}, .scratch = "/tmp"},
                          clock, random, null_log());
    bool done = false;
    for (int n = 0; n < stop && !done; ++n) {
      done = value(job.step({.units = 64})).kind == StepOutcome::Kind::kDone;
    }
    if (done) {
      break;
    }
  }
  EXPECT_FALSE(scratch_is_used());
}

}  // namespace
}  // namespace verger::verify
