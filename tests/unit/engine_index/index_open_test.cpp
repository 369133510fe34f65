#include <tuple>

#include "engine/index/bloom_filter.h"
#include "engine/index/existence_filter.h"
#include "engine/index/index_map.h"
#include "engine/index/rebuild_job.h"
#include "tests/unit/engine_index/index_fixture.h"

namespace verger::index {
namespace {

class IndexOpen : public IndexTest {
 protected:
  /// 75 entries in tables and memory.
  Entries fill() {
    auto index = open();
    write_many(3, 25, index.get());
    return everything(*index);
  }
  static Entries everything(const Index& index) {
    Entries entries;
    for (int stream = 0; stream < 3; ++stream) {
      const auto found = all(index, "stream-" + std::to_string(stream));
      entries.insert(entries.end(), found.begin(), found.end());
    }
    return entries;
  }
  Path map() const { return Path(kDirectory) / kIndexMapName; }
  Path some_table() {
    for (const auto& name : names(kDirectory)) {
      if (name.size() == 36) {
        return Path(kDirectory) / name;
      }
    }
    throw std::runtime_error("no table");
  }
};

TEST_F(IndexOpen, WithoutAMapIndexesTheLogAndRemovesTheTables) {
  const auto expected = fill();
  const auto table = some_table();
  value(disk_.remove(map()));
  auto index = open();
  EXPECT_EQ(everything(*index), expected);
  EXPECT_FALSE(value(disk_.exists(table)));
  EXPECT_FALSE(has_backup());
  EXPECT_EQ(levels(*index), (std::vector<std::pair<int, std::uint64_t>>{{2, 75}}));
  EXPECT_EQ(everything(*open()), expected);
}

TEST_F(IndexOpen, OfFewEntriesKeepsThemInMemoryAsTheServerDoes) {
  write_many(3, 3);
  auto index = open();
  EXPECT_EQ(index->memory_entry_count(), 9U);
  EXPECT_EQ(everything(*index).size(), 9U);
  EXPECT_FALSE(value(disk_.exists(map())));
}

TEST_F(IndexOpen, WithADamagedMapCopiesTheDirectoryAndIndexesTheLog) {
  const auto expected = fill();
  const auto table = some_table();
  const auto content = value(read_file(disk_, table));
  alter(map(), 40, std::byte{'x'});
  clock_.set(value(parse_ticks("2024-03-05T06:07:08.09Z")));
  auto index = open();
  EXPECT_EQ(everything(*index), expected);
  const Path backup = "/db/index-backup-2024-03-05_06-07-08.090";
  EXPECT_EQ(value(read_file(disk_, backup / table.filename())), content);
  EXPECT_TRUE(value(disk_.exists(backup / "stream-existence" / "streamExistenceFilter.chk")));
}

TEST_F(IndexOpen, WithATableGoneOrDamagedIndexesTheLog) {
  const auto expected = fill();
  value(disk_.remove(some_table()));
  EXPECT_EQ(everything(*open()), expected);
  EXPECT_TRUE(has_backup());

  clock_.advance_seconds(1);
  alter(some_table(), 0, std::byte{7});
  EXPECT_EQ(everything(*open()), expected);

  clock_.advance_seconds(1);
  alter(some_table(), 130, std::byte{7});  // seen by its MD5 only
  options_.verify_md5_at_open = true;
  EXPECT_EQ(everything(*open()), expected);
  EXPECT_EQ(std::ranges::count_if(
                names("/db"), [](const auto& name) { return name.starts_with("index-backup-"); }),
            3);
}

TEST_F(IndexOpen, BeyondTheEndOfTheLogIndexesTheLog) {
  fill();
  const auto loaded = value(load_index_map(disk_, kDirectory));
  value(log_->truncate(loaded.commit_checkpoint));
  auto index = open();
  EXPECT_TRUE(has_backup());
  EXPECT_EQ(everything(*index).size(), 69U);
}

TEST_F(IndexOpen, ForReadingRefusesDamageAndChangesNothing) {
  const auto expected = fill();
  options_.read_only = true;
  const auto operations = disk_.operation_count();
  EXPECT_EQ(everything(*open()), expected);
  EXPECT_EQ(disk_.operation_count(), operations);
  alter(map(), 40, std::byte{'x'});
  const auto damaged = disk_.operation_count();
  const auto refused = try_open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kCorruption);
  EXPECT_NE(refused.error().message.find(map().string()), std::string::npos);
  EXPECT_EQ(disk_.operation_count(), damaged);
}

TEST_F(IndexOpen, ForReadingWithoutDirectoryHoldsEverythingInMemory) {
  write_many(3, 25);
  options_.read_only = true;
  const auto operations = disk_.operation_count();
  auto index = open();
  EXPECT_EQ(index->memory_entry_count(), 75U);
  EXPECT_EQ(disk_.operation_count(), operations);
  EXPECT_EQ(
      index->add({{{StreamHash(1), EventNumber(0), LogPosition(0)}}, {}, {}, "s"}).error().code,
      Errc::kInvalidArgument);
}

TEST_F(IndexOpen, RefusesATableOfANewerVersionAndChangesNothing) {
  fill();
  const auto table = some_table();
  alter(table, 1, std::byte{5});
  alter(table, value(disk_.file_size(table)) - 144 + 1, std::byte{5});
  const auto operations = disk_.operation_count();
  EXPECT_EQ(try_open().error().code, Errc::kUnsupported);
  EXPECT_EQ(disk_.operation_count(), operations);
}

TEST_F(IndexOpen, RemovesLeftOversAndLeavesForeignFiles) {
  fill();
  const std::vector<std::string> left_over{
      "0cd02fb2-4b1f-4ffe-bd2a-2a4b7f7a55a1", "0cd02fb2-4b1f-4ffe-bd2a-2a4b7f7a55a1.bloomfilter",
      "0CD02FB2-4B1F-4FFE-BD2A-2A4B7F7A55A2.run.tmp",
      "indexmap.0cd02fb2-4b1f-4ffe-bd2a-2a4b7f7a55a1.indexmap.tmp"};
  for (const auto& name : left_over) {
    write_file(Path(kDirectory) / name, "x");
  }
  write_file(Path(kDirectory) / "notes.txt", "x");
  value(disk_.make_directories(Path(kDirectory) / "scavenging"));
  open();
  for (const auto& name : left_over) {
    EXPECT_FALSE(value(disk_.exists(Path(kDirectory) / name))) << name;
  }
  EXPECT_TRUE(value(disk_.exists(Path(kDirectory) / "notes.txt")));
  EXPECT_TRUE(value(disk_.exists(Path(kDirectory) / "scavenging")));
}

TEST_F(IndexOpen, CatchesUpToTheGivenEndOnly) {
  write_many(1, 5);
  const auto end = log_->end();
  write("stream-0", 5);
  options_.catch_up_end = end;
  EXPECT_EQ(all(*open(), "stream-0").size(), 5U);
}

TEST_F(IndexOpen, FlushesWhileItCatchesUp) {
  {
    write_many(1, 10, open().get());
  }
  for (int number = 10; number < 35; ++number) {
    write("stream-0", number);
  }
  auto index = open();
  EXPECT_EQ(levels(*index), (std::vector<std::pair<int, std::uint64_t>>{{0, 10}, {1, 20}}));
  EXPECT_EQ(index->memory_entry_count(), 5U);
  EXPECT_EQ(all(*index, "stream-0").size(), 35U);
}

TEST_F(IndexOpen, RefusesATransactionWithTwoStreams) {
  namespace flags = log::prepare_flags;
  auto first = prepare("a", 0, flags::kData | flags::kTransactionBegin);
  const auto start = value(log_->append(std::span(&first, 1))).front();
  auto second = prepare("b", 0, flags::kData | flags::kTransactionEnd);
  second.transaction_position = start;
  second.transaction_offset = 1;
  value(log_->append(std::span(&second, 1)));
  log::Commit commit;
  commit.transaction_position = start;
  commit.first_event_number = EventNumber(0);
  commit.correlation_id = random_.uuid();
  value(log_->append(commit));
  value(log_->flush());
  EXPECT_EQ(try_open().error().code, Errc::kCorruption);
}

TEST_F(IndexOpen, RebuildsInSmallStepsWithTheSameResult) {
  const auto expected = fill();
  auto index = open();
  IndexRebuildJob job(*index, *log_);
  int steps = 0;
  while (value(job.step(Budget{.units = 1})).kind != StepOutcome::Kind::kDone) {
    ++steps;
    EXPECT_EQ(everything(*index), expected);
  }
  EXPECT_GT(steps, 150);
  EXPECT_EQ(job.entries_found(), 75U);
  EXPECT_EQ(everything(*index), expected);
  EXPECT_EQ(index->tables().size(), 1U);
  index.reset();
  EXPECT_EQ(everything(*open()), expected);
}

TEST_F(IndexOpen, SeveralThreadsMakeTheSameTable) {
  options_.max_mem_table_size = 500;
  auto open_transaction =
      prepare("transaction", 0,
              log::prepare_flags::kData | log::prepare_flags::kTransactionBegin |
                  log::prepare_flags::kTransactionEnd);
  const auto begun = value(log_->append(std::span(&open_transaction, 1))).front();
  write_many(3, 1000);
  log::Commit commit;  // some chunks later
  commit.transaction_position = begun;
  commit.first_event_number = EventNumber(0);
  commit.correlation_id = random_.uuid();
  value(log_->append(commit));
  write_many(3, 100);
  ASSERT_GT(log_->chunks().size(), 4U);
  auto index = open();
  const auto table_of = [&](int threads, LogPosition end) {
    IndexRebuildJob job(*index, *log_, end, threads);
    while (value(job.step(Budget{.units = 100})).kind != StepOutcome::Kind::kDone) {
    }
    EXPECT_EQ(index->tables().size(), 1U);
    EXPECT_EQ(job.entries_found(), index->tables().front().table->count());
    return std::tuple(value(read_file(disk_, index->tables().front().table->path())),
                      job.records_read(), index->prepare_checkpoint(), index->commit_checkpoint());
  };
  for (const auto end : {kNoPosition, log_->chunks()[2]->start_position() + 1000}) {
    const auto expected = table_of(1, end);
    for (const int threads : {2, 3, 8}) {
      EXPECT_EQ(table_of(threads, end), expected) << threads;
    }
  }
  EXPECT_EQ(all(*index, "transaction").size(), 0U) << "committed behind that end";
  table_of(2, kNoPosition);
  EXPECT_EQ(all(*index, "transaction").size(), 1U);
}

TEST_F(IndexOpen, ADamagedRecordEndsARebuildWithSeveralThreads) {
  options_.max_mem_table_size = 500;
  write_many(3, 700);
  auto index = open();
  const auto tables = index->tables().size();
  const auto chunk = log_->chunks()[1];
  value(disk_.set_read_only(chunk->path(), false));
  alter(chunk->path(), log::kChunkHeaderSize + 4, std::byte{9});
  for (const int threads : {1, 2, 8}) {
    IndexRebuildJob job(*index, *log_, kNoPosition, threads);
    Result<StepOutcome> step;
    do {
      step = job.step(Budget{.units = 100});
    } while (step && step->kind != StepOutcome::Kind::kDone);
    ASSERT_FALSE(step) << threads;
    EXPECT_NE(step.error().message.find(chunk->path().string()), std::string::npos);
    EXPECT_EQ(index->tables().size(), tables);
    // One that is left early ends its threads.
    IndexRebuildJob abandoned(*index, *log_, kNoPosition, threads);
    value(abandoned.step(Budget{.units = 1}));
  }
}

class Existence : public IndexOpen {
 protected:
  LogPosition checkpoint() {
    ExistenceFilter filter(disk_, kDirectory, 10'000);
    value(filter.load());
    return filter.checkpoint();
  }
  bool contains(std::string_view stream) {
    ExistenceFilter filter(disk_, kDirectory, 10'000);
    return value(filter.open_filter())->may_contain(hash_stream(stream));
  }
};

TEST_F(Existence, FilterHoldsEveryStreamBeforeItsCheckpoint) {
  auto index = open();
  for (int stream = 0; stream < 25; ++stream) {
    write("s" + std::to_string(stream), 0, index.get());
  }
  EXPECT_EQ(checkpoint(), index->commit_checkpoint());
  int strangers = 0;
  for (int stream = 0; stream < 20; ++stream) {
    EXPECT_TRUE(contains("s" + std::to_string(stream)));
    strangers += contains("x" + std::to_string(stream)) ? 1 : 0;
  }
  EXPECT_LT(strangers, 3);
  const auto size = value(disk_.file_size("/db/index/stream-existence/streamExistenceFilter.dat"));
  EXPECT_EQ(size, bloom_file_size(10'000));
}

TEST_F(Existence, FilterHoldsAHardDeletedStreamThatWasNeverWritten) {
  auto tombstone = prepare("never-written", 0, kFlags | log::prepare_flags::kStreamDelete);
  tombstone.expected_version = kDeletedStream.value() - 1;
  value(log_->append(std::span(&tombstone, 1)));
  value(log_->flush());
  auto index = open();
  EXPECT_EQ(all(*index, "never-written").front().number, kDeletedStream);
  write_many(1, 10, index.get());
  EXPECT_TRUE(contains("never-written"));
}

TEST_F(Existence, FilterHoldsStreamsOfOpenTransactions) {
  auto part = prepare("open", 0, log::prepare_flags::kData | log::prepare_flags::kTransactionBegin);
  value(log_->append(std::span(&part, 1)));
  value(log_->flush());
  auto index = open();
  write_many(1, 10, index.get());
  EXPECT_TRUE(contains("open"));
  EXPECT_TRUE(all(*index, "open").empty());
}

TEST_F(Existence, CheckpointFollowsATruncation) {
  auto index = open();
  write_many(1, 20, index.get());
  const auto entries = all(*index, "stream-0");
  const auto cut = entries[5].position;
  ASSERT_GT(checkpoint(), cut);
  EXPECT_EQ(index->truncate(cut).error().code, Errc::kConflict);
  EXPECT_EQ(checkpoint(), cut);
}

TEST_F(Existence, FilterThatEndsTooEarlyIsLeftAlone) {
  fill();
  ExistenceFilter filter(disk_, kDirectory, 10'000);
  value(filter.load());
  value(filter.lower(LogPosition(10)));
  auto index = open();
  write_many(3, 10, index.get());
  EXPECT_EQ(checkpoint(), LogPosition(10));
}

}  // namespace
}  // namespace verger::index
