// An index that does not fit its log, or is damaged, as a node meets it when it starts.
#include "engine/index/index_map.h"
#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WarningLog final : public Log {
 public:
  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) override {
    if (level == LogLevel::kWarning) {
      auto& line = lines.emplace_back(message);
      for (const auto& field : fields) {
        line += " " + field.value;
      }
    }
  }
  std::vector<std::string> lines;
};

class IndexDamage : public StreamsTest {
 protected:
  IndexDamage() {
    builder.write("s", 30);
    builder.write("t", 30);
    builder.close();
    log_before_ = log_files();
  }
  /// As a member of a cluster, or alone.
  Result<std::unique_ptr<Database>> try_start(bool commit_all) {
    lines_.lines.clear();
    return Database::open(disk, "/db",
                          test::database_options(builder.options(), log::Access::kWrite),
                          commit_all, builder.clock(), builder.random(), lines_);
  }
  std::unique_ptr<Database> start(bool commit_all) {
    auto opened = try_start(commit_all);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  std::vector<std::int64_t> read(const Database& database, std::string_view stream) {
    return numbers(database.read_forward(stream, EventNumber(0), 100).value());
  }
  std::vector<Bytes> log_files() {
    std::vector<Bytes> contents;
    const auto listed = disk.list("/db").value();
    for (const auto& entry : listed) {
      if (entry.name.starts_with("chunk-")) {
        contents.push_back(read_file(disk, Path("/db") / entry.name).value());
      }
    }
    return contents;
  }
  index::IndexMap map() { return index::load_index_map(disk, "/db/index").value(); }
  void write(const Path& path, std::uint64_t offset, ByteView bytes) {
    ASSERT_TRUE(disk.open(path, OpenMode::kReadWrite).value()->write_at(offset, bytes));
  }
  void set_chaser(LogPosition position) {
    Bytes bytes;
    append_le(bytes, position.value());
    write("/db/chaser.chk", 0, bytes);
  }
  LogPosition chaser() {
    return LogPosition(load_le<std::int64_t>(read_file(disk, "/db/chaser.chk").value().data()));
  }

  WarningLog lines_;
  std::vector<Bytes> log_before_;
};

TEST_F(IndexDamage, AMemberRebuildsAnIndexThatReachesTheChaser) {
  const auto sound = map();
  set_chaser(sound.commit_checkpoint);
  const auto database = start(false);
  ASSERT_NE(database, nullptr);
  EXPECT_THAT(lines_.lines, Contains(HasSubstr("rebuilt from the log")));
  EXPECT_THAT(lines_.lines, Contains(HasSubstr("chaser.chk")));
  EXPECT_EQ(database->committed(), sound.commit_checkpoint);
  EXPECT_LT(database->stream_index().commit_checkpoint(), sound.commit_checkpoint);
  EXPECT_EQ(log_files(), log_before_);
  // What lies behind the chaser is not seen before it is committed.
  const auto seen = read(*database, "t").size();
  EXPECT_LT(seen, 30U);
  ASSERT_TRUE(database->commit_up_to(database->transaction_log().end()));
  EXPECT_EQ(read(*database, "t").size(), 30U);
}

TEST_F(IndexDamage, AMemberKeepsAnIndexThatEndsBeforeTheChaser) {
  const auto sound = map();
  ASSERT_GT(chaser(), sound.commit_checkpoint);
  const auto database = start(false);
  ASSERT_NE(database, nullptr);
  EXPECT_THAT(lines_.lines, IsEmpty());
  EXPECT_EQ(map().tables, sound.tables);
}

TEST_F(IndexDamage, ASingleNodeRebuildsItTooAndMovesTheChaser) {
  const auto sound = map();
  set_chaser(LogPosition(0));
  const auto database = start(true);
  ASSERT_NE(database, nullptr);
  EXPECT_THAT(lines_.lines, Contains(HasSubstr("rebuilt from the log")));
  EXPECT_EQ(read(*database, "s").size(), 30U);
  EXPECT_EQ(read(*database, "t").size(), 30U);
  EXPECT_EQ(chaser(), database->transaction_log().end());
  EXPECT_NE(map().tables, sound.tables);
}

TEST_F(IndexDamage, NoIndexIsLeftThatReachesTheChaserWhereverOpeningFails) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 1000U);
    ASSERT_TRUE(index::save_index_map(disk, "/db/index", {}, builder.random()));
    set_chaser(LogPosition(0));
    disk.reset_count();
    disk.set_fault_hook([nth](const DiskOperation& operation) {
      return operation.number == nth ? std::optional(Error{Errc::kIo, "fails"}) : std::nullopt;
    });
    const auto opened = try_start(true);
    disk.set_fault_hook({});
    const auto left = map();
    EXPECT_TRUE(left.commit_checkpoint == kNoPosition || left.commit_checkpoint < chaser());
    if (opened && disk.operation_count() <= nth) {
      EXPECT_FALSE(left.tables.empty());
      break;
    }
  }
}

TEST_F(IndexDamage, ANodeRebuildsADamagedMapAndALostOrDamagedTable) {
  const auto damage = [&](const auto& harm) {
    builder.clock().advance_seconds(1);
    const auto before = map();
    harm();
    const auto database = start(true);
    ASSERT_NE(database, nullptr);
    EXPECT_THAT(lines_.lines, Contains(HasSubstr("rebuilt from the log")));
    EXPECT_THAT(lines_.lines, Contains(HasSubstr("index-backup-")));
    EXPECT_EQ(read(*database, "s").size(), 30U);
    EXPECT_EQ(read(*database, "t").size(), 30U);
    EXPECT_NE(map().tables, before.tables);
    EXPECT_EQ(log_files(), log_before_);
  };
  const auto table = [&] { return Path("/db/index") / map().tables.front().file; };
  damage([&] { write("/db/index/indexmap", 40, as_bytes("x")); });
  damage([&] { ASSERT_TRUE(disk.remove(table())); });
  damage([&] { write(table(), 1, as_bytes("\x05")); });
}

}  // namespace
}  // namespace verger::streams
