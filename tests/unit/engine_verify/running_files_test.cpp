// A verification beside a database that is written to meanwhile.
#include "engine/verify/running_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/log/chunk.h"
#include "engine/verify/verify_database_job.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"

namespace verger::verify {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunningDatabase : public ::testing::Test {
 protected:
  RunningDatabase() : builder(disk, "/db") { write(200); }

  void write(int count) {
    for (int i = 0; i < count; ++i) {
      builder.write(fmt::format("stream-{}", written % 7), 1 + i % 3,
                    static_cast<std::size_t>(100 + 37 * (i % 11)));
      ++written;
    }
  }
  std::unique_ptr<RunningFiles> look() {
    return value(RunningFiles::open(disk, "/db", "/db/index", "/tmp", random));
  }
  /// What is found there, one line each; with each step the database gets another event.
  std::vector<std::string> verify(RunningFiles& files, bool writes) {
    VerifyDatabaseJob job(files, {.directory = "/db", .index_directory = {}, .scratch = "/tmp"},
                          clock, random, null_log());
    while (value(job.step({.units = 16})).kind != StepOutcome::Kind::kDone) {
      if (writes) {
        write(2);
      }
    }
    totals = job.totals();
    std::vector<std::string> lines;
    for (const auto& finding : job.findings().all()) {
      lines.push_back(
          fmt::format("{} {}: {}", finding.damage ? "damage" : "note", finding.file, finding.text));
    }
    return lines;
  }
  void flip(const Path& path, std::uint64_t offset) {
    auto content = value(read_file(disk, path));
    content.at(offset) ^= std::byte{0x40};
    ok(disk.set_read_only(path, false));
    ok(write_file_durably(disk, path, content));
  }
  void put(const Path& path, std::int64_t number) {
    Bytes bytes(sizeof(number));
    store_le<std::int64_t>(bytes.data(), number);
    ok(write_file_durably(disk, path, bytes));
  }

  MemoryFileSystem disk;
  test::ManualClock clock;
  SeededRandom random{5};
  test::DatabaseBuilder builder;
  VerifyTotals totals;
  int written = 0;
};

TEST_F(RunningDatabase, HasNoDamageWhileItIsWrittenTo) {
  auto files = look();
  const auto at_once = value(files->list("/db"));
  EXPECT_THAT(verify(*files, /*writes=*/true), IsEmpty());
  EXPECT_GT(written, 250);
  EXPECT_GT(totals.chunk_files, 3U);
  EXPECT_GT(totals.tables, 0U);
  EXPECT_GT(value(disk.list("/db")).size(), at_once.size()) << "chunks were completed meanwhile";
  ok(files->still_whole());
  files.reset();
  EXPECT_THAT(value(disk.list("/tmp")), IsEmpty());
}

TEST_F(RunningDatabase, ShowsWhatWasThereAtThatMoment) {
  const auto files = look();
  const auto before = value(files->list("/db"));
  const auto index = value(files->list("/db/index"));
  write(300);
  EXPECT_EQ(value(files->list("/db")).size(), before.size());
  EXPECT_EQ(value(files->list("/db/index")).size(), index.size());
  for (const auto& entry : index) {
    if (!entry.is_directory) {
      EXPECT_EQ(value(value(files->open(Path("/db/index") / entry.name, OpenMode::kRead))->size()),
                entry.size);
    }
  }
  EXPECT_EQ(files->open("/db/writer.chk", OpenMode::kReadWrite).error().code, Errc::kRefused);
  EXPECT_EQ(files->remove("/db/chunk-000000.000000").error().code, Errc::kRefused);
}

TEST_F(RunningDatabase, FindsDamageInChunksAndTables) {
  flip("/db/chunk-000001.000000", log::kChunkHeaderSize);
  Path table;
  for (const auto& entry : value(disk.list("/db/index"))) {
    if (Uuid::parse(entry.name)) {
      table = Path("/db/index") / entry.name;
    }
  }
  flip(table, 128 + 16);
  const auto files = look();
  const auto found = verify(*files, /*writes=*/true);
  EXPECT_THAT(found, Contains(HasSubstr("damage /db/chunk-000001.000000")));
  EXPECT_THAT(found, Contains(HasSubstr("damage " + table.string())));
  ok(files->still_whole());
}

TEST_F(RunningDatabase, ChunksThatAreReplacedMeanwhileMakeItWorthless) {
  const auto files = look();
  ok(disk.set_read_only("/db/chunk-000001.000000", false));
  ok(disk.rename("/db/chunk-000001.000000", "/db/chunk-000001.000001"));
  verify(*files, /*writes=*/false);
  EXPECT_EQ(files->still_whole().error().code, Errc::kConflict);
}

TEST_F(RunningDatabase, ALogThatIsCutMeanwhileMakesItWorthless) {
  const auto files = look();
  ok(files->still_whole());
  put("/db/truncate.chk", 4'096);
  EXPECT_EQ(files->still_whole().error().code, Errc::kConflict);
  put("/db/truncate.chk", -1);
  ok(files->still_whole());
  builder.close();
  put("/db/writer.chk", 4'096);
  EXPECT_EQ(files->still_whole().error().code, Errc::kConflict);
}

TEST_F(RunningDatabase, ALastChunkThatIsNoLongerThereMakesItWorthless) {
  const auto writer = load_le<std::int64_t>(value(read_file(disk, "/db/writer.chk")).data());
  const auto files = look();
  builder.close();
  const ChunkNumber last(static_cast<std::int32_t>(writer / builder.options().chunk_size));
  const auto path = "/db" / Path(log::chunk_file_name(last, 0));
  ok(disk.rename(path, "/db" / Path(log::chunk_file_name(last, 1))));
  const auto whole = files->still_whole();
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, Errc::kConflict);
  EXPECT_THAT(whole.error().message, HasSubstr("replaced"));
}

TEST_F(RunningDatabase, WhatCannotBeReadIsNotCalledDamaged) {
  const auto opened = [this] {
    return RunningFiles::open(disk, "/db", "/db/index", "/tmp", random);
  };
  auto content = value(read_file(disk, "/db/chunk-000001.000000"));
  const auto plain = content;
  content.at(34) = std::byte{4};  // a version in which the data may be transformed
  content.at(35) = std::byte{1};
  ok(disk.set_read_only("/db/chunk-000001.000000", false));
  ok(write_file_durably(disk, "/db/chunk-000001.000000", content));
  const auto transformed = opened();
  ASSERT_FALSE(transformed);
  EXPECT_EQ(transformed.error().code, Errc::kUnsupported) << transformed.error().message;
  ok(write_file_durably(disk, "/db/chunk-000001.000000", plain));
  ok(disk.rename("/db/chunk-000000.000000", "/elsewhere"));
  const auto archived = opened();
  ASSERT_FALSE(archived);
  EXPECT_EQ(archived.error().code, Errc::kUnsupported);
  EXPECT_THAT(archived.error().message, HasSubstr("begins with chunk 1"));
}

TEST_F(RunningDatabase, TablesThatAreRemovedMeanwhileAreHeld) {
  const auto files = look();
  EXPECT_EQ(files->held_bytes(), 0U);
  EXPECT_GT(files->table_bytes(), 0U);
  std::uint64_t removed = 0;
  for (const auto& entry : value(disk.list("/db/index"))) {
    if (Uuid::parse(entry.name)) {
      removed += entry.size;
      ok(disk.remove(Path("/db/index") / entry.name));
    }
  }
  EXPECT_EQ(files->held_bytes(), removed);
}

TEST_F(RunningDatabase, OneThatWasCutAndReceivedOtherRecordsIsNoticed) {
  const auto writer = value(read_file(disk, "/db/writer.chk"));
  const auto position = load_le<std::int64_t>(writer.data());
  const auto files = look();
  builder.close();
  const auto number = position / builder.options().chunk_size;
  flip("/db" / Path(log::chunk_file_name(ChunkNumber(static_cast<std::int32_t>(number)), 0)),
       static_cast<std::uint64_t>(log::kChunkHeaderSize + position % builder.options().chunk_size) -
           8);
  EXPECT_EQ(files->still_whole().error().code, Errc::kConflict);
}

}  // namespace
}  // namespace verger::verify
