// Reads go to the files: what is altered there is noticed, and never shown.
#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

class Damage : public StreamsTest {
 protected:
  std::unique_ptr<Database> reopen() {
    builder.close();
    auto opened = Database::open(disk, "/db",
                                 test::database_options(builder.options(), log::Access::kReadOnly),
                                 true, builder.clock(), builder.random(), null_log());
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  void overwrite(const Path& path, std::uint64_t offset, ByteView bytes) {
    static_cast<void>(disk.set_read_only(path, false));
    auto file = disk.open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->write_at(offset, bytes));
    ASSERT_TRUE((*file)->sync());
  }
};

TEST_F(Damage, AnAlteredPTableMakesTheReadFail) {
  const auto outcome = builder.write("s", 1);
  builder.write("t", 40);
  ASSERT_FALSE(database().stream_index().tables().empty());
  // The entry of event 0@s: number, hash, position. Its position is moved into another record.
  const auto table = database().stream_index().tables().front().table;
  const auto hash = database().stream_index().hash("s");
  std::optional<std::uint64_t> place;
  for (std::uint64_t n = 0; n < table->count(); ++n) {
    if (table->entry(n)->hash == hash) {
      place = n;
    }
  }
  ASSERT_TRUE(place);
  ASSERT_EQ(table->entry(*place)->position, outcome.position);
  const auto path = table->path();
  Bytes position;
  append_le(position, outcome.position.value() + 3);
  const auto database = reopen();
  ASSERT_NE(database, nullptr);
  ASSERT_TRUE(database->read_forward("s", EventNumber(0), 1));
  overwrite(path, 128 + *place * 24 + 16, position);
  const auto read = database->read_forward("s", EventNumber(0), 1);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorruption);
}

TEST_F(Damage, AnEntryThatPointsToACommitRecordMakesTheReadFail) {
  builder.transaction("t", 1);
  Bytes buffer;
  const auto commit =
      log::read_before(database().transaction_log(), database().committed(), buffer);
  ASSERT_TRUE(commit && *commit);
  index::IndexedWrite wrong;
  wrong.stream = "s";
  wrong.prepare = wrong.commit = (*commit)->position();
  wrong.entries = {{database().stream_index().hash("s"), EventNumber(0), (*commit)->position()}};
  ASSERT_TRUE(database().stream_index().add(wrong));
  const auto read = database().read_forward("s", EventNumber(0), 1);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorruption);
  EXPECT_NE(read.error().message.find("index"), std::string::npos) << read.error().message;
}

/// Puts a chunk in place of chunk 0 that holds only the records `keep` accepts.
void rewrite_first_chunk(test::DatabaseBuilder& builder, FileSystem& disk,
                         const std::function<bool(const log::LogRecord&)>& keep) {
  auto& log = builder.database().transaction_log();
  const auto old = log.chunks().front();
  auto header = old->header();
  header.scavenged = true;
  header.chunk_id = builder.random().uuid();
  auto writer = log::ChunkWriter::create(disk, builder.directory(), "x.scavenge.tmp", header);
  ASSERT_TRUE(writer) << writer.error().message;
  auto scanner = log::ChunkScanner::open(old, LogPosition(0));
  ASSERT_TRUE(scanner);
  for (auto record = scanner->next(); record && *record; record = scanner->next()) {
    if (keep(**record)) {
      ASSERT_TRUE(writer->append((*record)->position(), (*record)->framed));
    }
  }
  const auto finished = writer->finish();
  ASSERT_TRUE(finished) << finished.error().message;
  const auto switched = log.switch_in_chunk(finished->path);
  ASSERT_TRUE(switched) << switched.error().message;
}

TEST_F(Damage, AMissingRecordIsSkipped) {
  builder.write("s", 3);
  const auto second = database().read_forward("s", EventNumber(1), 1)->events.at(0);
  builder.point();
  rewrite_first_chunk(builder, disk, [&](const log::LogRecord& record) {
    return record.position() != second.prepare_position;
  });
  EXPECT_THAT(numbers(forward("s")), ::testing::ElementsAre(0, 2));
  EXPECT_THAT(numbers(backward("s")), ::testing::ElementsAre(2, 0));
}

TEST_F(Damage, AMissingLastRecordMakesTheStreamUnreadable) {
  const auto last = builder.write("s", 1);
  builder.point();
  rewrite_first_chunk(builder, disk, [&](const log::LogRecord& record) {
    return record.position() != last.position;
  });
  const auto read = database().read_forward("s", EventNumber(0), 10);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorruption);
  EXPECT_NE(read.error().message.find("'s'"), std::string::npos) << read.error().message;
}

TEST_F(Damage, ReadersGoOnWhileChunksAreReplaced) {
  builder.write("s", 30, 100);
  builder.point();
  builder.write("s", 30, 100);
  for (int round = 0; round < 3; ++round) {
    rewrite_first_chunk(builder, disk, [](const log::LogRecord&) { return true; });
    EXPECT_EQ(forward("s").events.size(), 60U);
    EXPECT_EQ(database().transaction_log().chunks().front()->version(), round + 1);
  }
}

}  // namespace
}  // namespace verger::streams
