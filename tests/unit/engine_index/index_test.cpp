#include "engine/index/index.h"

#include <atomic>
#include <thread>

#include "engine/index/index_map.h"
#include "tests/unit/engine_index/index_fixture.h"

namespace verger::index {
namespace {

using Levels = std::vector<std::pair<int, std::uint64_t>>;

TEST_F(IndexTest, FlushesAFullMemtableAndMergesTwoTablesOfALevel) {
  auto index = open();
  write_many(1, 9, index.get());
  EXPECT_EQ(index->memory_entry_count(), 9U);
  EXPECT_TRUE(index->tables().empty());
  for (int number = 9; number < 70; ++number) {
    write("stream-0", number, index.get());
  }
  EXPECT_EQ(levels(*index), (Levels{{0, 10}, {1, 20}, {2, 40}}));
  EXPECT_EQ(index->memory_entry_count(), 0U);
  EXPECT_EQ(index->commit_checkpoint(), all(*index, "stream-0").front().position);
  EXPECT_EQ(all(*index, "stream-0").size(), 70U);
  // Map, three tables with their filters, the existence filter's directory.
  EXPECT_EQ(names(kDirectory).size(), 1U + 6U + 1U);
}

TEST_F(IndexTest, IsTheSameAfterOpeningAgain) {
  std::vector<Entries> expected;
  {
    auto index = open();
    write_many(3, 25, index.get());
    for (int stream = 0; stream < 3; ++stream) {
      expected.push_back(all(*index, "stream-" + std::to_string(stream)));
      EXPECT_EQ(expected.back().size(), 25U);
    }
  }
  for (const bool read_only : {true, false}) {
    options_.read_only = read_only;
    auto index = open();
    EXPECT_EQ(index->memory_entry_count(), 5U);
    for (int stream = 0; stream < 3; ++stream) {
      EXPECT_EQ(all(*index, "stream-" + std::to_string(stream)), expected.at(std::size_t(stream)));
    }
    EXPECT_TRUE(index->may_exist("stream-2"));
    EXPECT_FALSE(index->may_exist("stream-3"));
  }
}

TEST_F(IndexTest, AnswersFromMemoryAndFromTablesAlike) {
  auto index = open();
  write_many(2, 12, index.get());  // 20 in a table, 4 in memory
  const auto hash = index->hash("stream-1");
  const auto entries = all(*index, "stream-1");
  ASSERT_EQ(entries.size(), 12U);
  EXPECT_EQ(value(index->latest(hash)), entries.front());
  EXPECT_EQ(value(index->next(hash, EventNumber(8))), entries[2]);
  EXPECT_EQ(value(index->next(hash, EventNumber(9))), entries[1]);
  EXPECT_EQ(value(index->next(hash, EventNumber(11))), std::nullopt);
  EXPECT_EQ(value(index->previous(hash, EventNumber(11))), entries[1]);
  EXPECT_EQ(value(index->previous(hash, EventNumber(10))), entries[2]);
  EXPECT_EQ(value(index->previous(hash, EventNumber(0))), std::nullopt);
  EXPECT_EQ(value(index->latest_before(hash, entries[0].position, nullptr)), entries[1]);
  EXPECT_EQ(value(index->latest_before(hash, entries[3].position, nullptr)), entries[4]);
  EXPECT_EQ(value(index->range(hash, EventNumber(0), kDeletedStream, 3)),
            Entries(entries.begin(), entries.begin() + 3));
  const auto forward = value(index->range_forward(hash, EventNumber(8), kDeletedStream, 3));
  EXPECT_EQ(forward, (Entries{entries[3], entries[2], entries[1]}));
}

TEST_F(IndexTest, ServesAnEntryOnceThatWasIndexedTwice) {
  auto index = open();
  for (int number = 0; number < 30; ++number) {
    const auto position = write("twice", number);
    for (int copy = 0; copy < 3; ++copy) {
      value(index->add(
          {{{index->hash("twice"), EventNumber(number), position}}, position, position, "twice"}));
    }
    value(index->maintain());
  }
  for (const std::size_t limit : {1U, 2U, 7U, 30U, 1000U}) {
    const auto found =
        value(index->range(index->hash("twice"), EventNumber(0), kDeletedStream, limit));
    ASSERT_EQ(found.size(), std::min<std::size_t>(limit, 30));
    const auto forward =
        value(index->range_forward(index->hash("twice"), EventNumber(0), kDeletedStream, limit));
    ASSERT_EQ(forward.size(), std::min<std::size_t>(limit, 30));
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].number.value(), 29 - static_cast<std::int64_t>(i));
      EXPECT_EQ(forward[i].number.value(), static_cast<std::int64_t>(i));
    }
  }
}

TEST_F(IndexTest, FailsALookupInAnAlteredTable) {
  auto index = open();
  write_many(40, 5, index.get());
  const auto table = index->tables().back().table;
  const auto entry = value(table->entry(table->count() / 2));
  ASSERT_TRUE(value(index->latest(entry.hash)));
  for (auto n = table->count() / 2 - 2; n < table->count() / 2 + 2; ++n) {
    alter(table->path(), table->entry_offset(n) + 15, std::byte(n % 2 == 0 ? 0x00 : 0xFF));
  }
  const auto found = index->range(entry.hash, EventNumber(0), kDeletedStream, 100);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kCorruption);
  EXPECT_NE(found.error().message.find(table->path().string()), std::string::npos);
  // The next start checks the tables, finds the damage and indexes the log anew.
  EXPECT_TRUE(value(disk_.exists(Path(kDirectory) / ".forceverify")));
  index = open();
  EXPECT_TRUE(has_backup());
  EXPECT_TRUE(value(index->latest(entry.hash)));
  EXPECT_FALSE(value(disk_.exists(Path(kDirectory) / ".forceverify")));
}

TEST_F(IndexTest, KeepsItsTablesWhileTheyAreHeld) {
  auto index = open();
  {
    const Index::TableHold hold(*index);
    write_many(1, 25, index.get());
    EXPECT_TRUE(index->tables().empty());
    EXPECT_EQ(index->rebuild(*log_).error().code, Errc::kRefused);
  }
  value(index->maintain());
  EXPECT_EQ(levels(*index), (Levels{{0, 25}}));
}

TEST_F(IndexTest, ReplacesATableInItsSlot) {
  auto index = open();
  write_many(1, 70, index.get());
  const auto old = index->tables()[1];
  const auto checkpoint = index->commit_checkpoint();
  auto writer =
      value(PTableWriter::create(disk_, kDirectory, random_.uuid(), old.table->count(), 8));
  PTableScanner scanner(old.table);
  for (int n = 0; auto entry = value(scanner.next()); ++n) {
    if (n % 2 == 0) {
      value(writer.append(*entry));
    }
  }
  value(index->replace_table(old.table, value(writer.finish())));
  EXPECT_EQ(levels(*index), (Levels{{0, 10}, {1, 10}, {2, 40}}));
  EXPECT_EQ(index->commit_checkpoint(), checkpoint);
  EXPECT_FALSE(value(disk_.exists(old.table->path())));
  EXPECT_EQ(index->replace_table(old.table, old.table->path()).error().code, Errc::kNotFound);
  EXPECT_EQ(all(*open(), "stream-0").size(), 60U);
}

TEST_F(IndexTest, ForgetsWhatWasCutOffTheLog) {
  auto index = open();
  write_many(1, 14, index.get());
  const auto entries = all(*index, "stream-0");
  value(index->truncate(entries[1].position));
  EXPECT_EQ(all(*index, "stream-0"), Entries(entries.begin() + 2, entries.end()));
  EXPECT_EQ(index->memory_entry_count(), 2U);
  // What is in tables cannot be forgotten, and they must not be taken for the new log's.
  EXPECT_EQ(index->truncate(entries[8].position).error().code, Errc::kConflict);
  EXPECT_FALSE(value(disk_.exists(Path(kDirectory) / kIndexMapName)));
  value(log_->truncate(entries[8].position));
  value(index->rebuild(*log_));
  EXPECT_EQ(all(*index, "stream-0"), Entries(entries.begin() + 9, entries.end()));
}

TEST_F(IndexTest, ForgetsATransactionWhoseCommitWasCutOff) {
  namespace flags = log::prepare_flags;
  auto part = prepare("transaction", 0, flags::kData | flags::kTransactionBegin);
  part.expected_version = -2;
  const auto start = value(log_->append(std::span(&part, 1))).front();
  const auto between = write("other", 0);
  log::Commit commit;
  commit.transaction_position = start;
  commit.first_event_number = EventNumber(0);
  commit.correlation_id = random_.uuid();
  const auto committed = value(log_->append(commit));
  value(log_->flush());
  auto index = open();
  EXPECT_EQ(all(*index, "transaction"),
            (Entries{{index->hash("transaction"), EventNumber(0), start}}));
  value(index->truncate(committed));
  EXPECT_TRUE(all(*index, "transaction").empty());
  EXPECT_EQ(all(*index, "other").front().position, between);
}

TEST_F(IndexTest, IsReadWhileItGrows) {
  auto index = open();
  options_.max_mem_table_size = 10;
  std::atomic<std::int64_t> visible = -1;
  std::atomic<bool> done = false;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const auto least = visible.load();
        const auto latest = index->latest(index->hash("growing"));
        const auto entries =
            index->range(index->hash("growing"), EventNumber(0), kDeletedStream, 1000);
        ASSERT_TRUE(latest && entries);
        ASSERT_GE(latest->has_value() ? (*latest)->number.value() : -1, least);
        ASSERT_GE(static_cast<std::int64_t>(entries->size()), least + 1);
      }
    });
  }
  for (int number = 0; number < 400; ++number) {
    write("growing", number, index.get());
    visible = number;
  }
  done = true;
}

}  // namespace
}  // namespace verger::index
