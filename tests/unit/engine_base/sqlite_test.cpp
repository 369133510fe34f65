#include "engine/base/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "engine/base/memory_file_system.h"

namespace verger::sqlite {
namespace {

using testing::HasSubstr;

Database open(FileSystem& files, const Path& path = "state.db", OpenOptions options = {}) {
  return Database::open(files, path, options).value();
}

TEST(Sqlite, StoresAndReadsEachKindOfValue) {
  MemoryFileSystem files;
  auto database = open(files);
  ASSERT_TRUE(
      database.execute("CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB, n TEXT) STRICT"));
  auto insert = database.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)").value();
  const Bytes blob{std::byte{0}, std::byte{255}};
  insert.bind(1, std::int64_t{-7}).bind(2, 0.5).bind(3, "text \xc3\xbc").bind(4, ByteView(blob));
  insert.bind(5, std::optional<std::string>());
  ASSERT_TRUE(insert.run());
  EXPECT_EQ(database.last_insert_rowid(), 1);
  EXPECT_EQ(database.changes(), 1);
  insert.bind(1, 8U).bind(2, 1.0).bind(3, std::string_view()).bind(4, ByteView()).bind_null(5);
  ASSERT_TRUE(insert.run());

  auto select = database.prepare("SELECT i, r, s, b, n FROM t ORDER BY rowid").value();
  ASSERT_TRUE(select.step().value());
  EXPECT_EQ(select.column_int(0), -7);
  EXPECT_EQ(select.column_double(1), 0.5);
  EXPECT_EQ(select.column_text(2), "text \xc3\xbc");
  EXPECT_TRUE(same_bytes(select.column_blob(3), blob));
  EXPECT_TRUE(select.column_is_null(4));
  ASSERT_TRUE(select.step().value());
  EXPECT_EQ(select.column_int(0), 8);
  EXPECT_FALSE(select.column_is_null(2));  // empty is not null
  EXPECT_FALSE(select.column_is_null(3));
  EXPECT_FALSE(select.step().value());
}

TEST(Sqlite, ForgetsParametersAtReset) {
  MemoryFileSystem files;
  auto database = open(files);
  auto statement = database.prepare("SELECT ?1").value();
  statement.bind(1, 5);
  ASSERT_TRUE(statement.step().value());
  EXPECT_EQ(statement.column_int(0), 5);
  statement.reset();
  ASSERT_TRUE(statement.step().value());
  EXPECT_TRUE(statement.column_is_null(0));
}

TEST(Sqlite, KeepsStatementsForTheNextWhoWantsThem) {
  MemoryFileSystem files;
  auto database = open(files);
  {
    auto first = database.prepare_to_keep("SELECT ?1").value();
    auto beside_it = database.prepare_to_keep("SELECT ?1").value();
    first.bind(1, 5);
    beside_it.bind(1, 6);
    ASSERT_TRUE(first.step().value() && beside_it.step().value());
    EXPECT_EQ(first.column_int(0), 5);
    EXPECT_EQ(beside_it.column_int(0), 6);
    first = std::move(beside_it);
  }
  for (int i = 0; i < 3; ++i) {
    auto again = database.prepare_to_keep("SELECT ?1").value();
    ASSERT_TRUE(again.step().value());
    EXPECT_TRUE(again.column_is_null(0)) << "it comes as a new one does";
    EXPECT_EQ(database.prepare_to_keep("SELECT 7").value().step(), true);
  }
  EXPECT_FALSE(database.prepare_to_keep("SELECT nothing FROM nowhere").has_value());
  ASSERT_TRUE(database.execute("CREATE TABLE t (x INTEGER)").has_value());
  ASSERT_TRUE(database.prepare_to_keep("SELECT * FROM t").value().step().has_value());
  ASSERT_TRUE(database.execute("ALTER TABLE t ADD COLUMN y").has_value());
  EXPECT_EQ(database.prepare_to_keep("SELECT * FROM t").value().step(), false);
  EXPECT_TRUE(database.close().has_value());
}

TEST(Sqlite, UsesOurSettingsForOurOwnState) {
  MemoryFileSystem files;
  auto database = open(files);
  EXPECT_EQ(database.query_text("PRAGMA journal_mode").value(), "wal");
  EXPECT_EQ(database.query_int("PRAGMA synchronous").value(), 2);
  EXPECT_EQ(database.query_int("PRAGMA foreign_keys").value(), 1);
}

TEST(Sqlite, LeavesTheSettingsToTheOwnerOfAForeignState) {
  MemoryFileSystem files;
  {
    auto database = open(files, "s.db", {.own_state = false});
    EXPECT_EQ(database.query_text("PRAGMA journal_mode").value(), "delete");
    ASSERT_TRUE(database.execute("PRAGMA page_size=16384"));
    EXPECT_EQ(database.query_text("PRAGMA journal_mode=WAL").value(), "wal");
    ASSERT_TRUE(database.execute("PRAGMA synchronous=NORMAL; CREATE TABLE t (a)"));
    EXPECT_EQ(database.query_int("PRAGMA page_size").value(), 16384);
    EXPECT_TRUE(files.exists("s.db-wal").value());
    EXPECT_FALSE(files.exists("s.db-shm").value());
    ASSERT_TRUE(database.close());
  }
  EXPECT_EQ(files.list("/").value().size(), 1U);
  EXPECT_EQ(files.file_size("s.db").value(), 2U * 16384);
}

TEST(Sqlite, RollsATransactionBackUnlessItWasCommitted) {
  MemoryFileSystem files;
  auto database = open(files);
  ASSERT_TRUE(database.execute("CREATE TABLE t (a)"));
  {
    auto transaction = Transaction::begin(database).value();
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES (1)"));
    EXPECT_TRUE(database.in_transaction());
    EXPECT_EQ(Transaction::begin(database).error().code, Errc::kInvalidArgument);
  }
  EXPECT_FALSE(database.in_transaction());
  {
    auto transaction = Transaction::begin(database).value();
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES (2)"));
    ASSERT_TRUE(transaction.commit());
  }
  EXPECT_EQ(database.query_int("SELECT sum(a) FROM t").value(), 2);
}

TEST(Sqlite, SaysWhatFailedAndWhere) {
  MemoryFileSystem files;
  auto database = open(files);
  ASSERT_TRUE(database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b NOT NULL)"));
  const auto wrong = database.execute("SELEKT");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(wrong.error().message, HasSubstr("state.db: \"SELEKT\": near"));
  EXPECT_EQ(database.prepare("SELECT x FROM t").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(database.prepare("  ").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(database.query_int("SELECT a FROM t").error().code, Errc::kNotFound);
  EXPECT_EQ(database.query_text("SELECT a FROM t").value(), std::nullopt);
  auto insert = database.prepare("INSERT INTO t VALUES (1, ?)").value();
  const auto conflict = insert.run();
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, Errc::kConflict);
  EXPECT_THAT(conflict.error().message, HasSubstr("NOT NULL"));
  const auto no_parameter = insert.bind(2, 1).run();
  ASSERT_FALSE(no_parameter);
  EXPECT_THAT(no_parameter.error().message, HasSubstr("cannot bind"));
  EXPECT_TRUE(insert.bind(1, 1).run());
}

TEST(Sqlite, RefusesWhatIsNoDatabase) {
  MemoryFileSystem files;
  ASSERT_TRUE(write_file_durably(files, "text", as_bytes(std::string(5000, 'x'))));
  for (const bool read_only : {false, true}) {
    const auto opened = Database::open(files, "text", {.read_only = read_only});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::kCorruption);
    EXPECT_THAT(opened.error().message, HasSubstr("text"));
  }
}

TEST(Sqlite, FindsNoDatabaseWhereThereIsNone) {
  MemoryFileSystem files;
  for (const bool read_only : {false, true}) {
    const auto opened =
        Database::open(files, "missing.db", {.read_only = read_only, .create = false});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::kNotFound);
    EXPECT_THAT(opened.error().message, HasSubstr("missing.db"));
  }
  EXPECT_TRUE(files.list("/").value().empty());
}

TEST(Sqlite, LocksTheDatabaseUntilItIsClosed) {
  MemoryFileSystem files;
  auto first = open(files);
  const auto second = Database::open(files, "state.db");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kRefused);
  EXPECT_THAT(second.error().message, HasSubstr("another program holds this lock"));
  ASSERT_TRUE(first.close());
  EXPECT_TRUE(first.close());
  EXPECT_TRUE(Database::open(files, "state.db"));
}

TEST(Sqlite, TellsAFullDiskApart) {
  MemoryFileSystem files;
  auto database = open(files);
  ASSERT_TRUE(database.execute("CREATE TABLE t (a)"));
  files.set_free_space(100);
  const auto inserted = database.execute("INSERT INTO t VALUES (zeroblob(50000))");
  ASSERT_FALSE(inserted);
  EXPECT_EQ(inserted.error().code, Errc::kNoSpace);
  EXPECT_THAT(inserted.error().message, HasSubstr("state.db-wal"));
  files.set_free_space(std::nullopt);
  EXPECT_TRUE(database.execute("INSERT INTO t VALUES (zeroblob(50000))"));
}

TEST(Sqlite, CommitsNothingMoreAfterAFailedSync) {
  MemoryFileSystem files;
  auto database = open(files);
  ASSERT_TRUE(database.execute("CREATE TABLE t (a)"));
  bool armed = true;
  files.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (armed && operation.kind == "sync") {
      armed = false;
      return Error{Errc::kIo, "injected"};
    }
    return std::nullopt;
  });
  const auto failed = database.execute("INSERT INTO t VALUES (1)");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kIo);
  EXPECT_THAT(failed.error().message, HasSubstr("injected"));
  EXPECT_FALSE(database.execute("INSERT INTO t VALUES (2)"));
  EXPECT_FALSE(database.close());
}

TEST(Sqlite, SnapshotIsOfOneMomentAndTouchesNothing) {
  MemoryFileSystem files;
  auto database = open(files);
  ASSERT_TRUE(database.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)"));
  files.reset_count();
  auto snapshot = Database::open_snapshot(files, "state.db").value();  // while the other has it
  EXPECT_EQ(snapshot.query_int("SELECT count(*) FROM t").value(), 1);
  EXPECT_EQ(files.operation_count(), 0U);
  ASSERT_TRUE(database.execute("INSERT INTO t VALUES (2)"));
  EXPECT_EQ(snapshot.query_int("SELECT count(*) FROM t").value(), 1);
  const auto written = snapshot.execute("INSERT INTO t VALUES (3)");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kRefused);
  EXPECT_TRUE(snapshot.close());
}

TEST(Sqlite, SnapshotTriesAgainWhenTheLogStartsOverMeanwhile) {
  // Counts how often the database file is opened, and lets a writer in between the first reads.
  class Watched final : public FileSystem {
   public:
    explicit Watched(MemoryFileSystem& files) : files_(files) {}
    Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
      if (path == "state.db-wal" && ++opened == 2 && between) {
        between();
      }
      return files_.open(path, mode);
    }
    Result<bool> exists(const Path& path) override { return files_.exists(path); }
    Result<std::uint64_t> file_size(const Path& path) override { return files_.file_size(path); }
    Result<std::vector<DirectoryEntry>> list(const Path& path) override {
      return files_.list(path);
    }
    Result<void> rename(const Path&, const Path&) override { return refuse(); }
    Result<void> remove(const Path&) override { return refuse(); }
    Result<void> make_directories(const Path&) override { return refuse(); }
    Result<void> sync_directory(const Path&) override { return refuse(); }
    Result<void> set_read_only(const Path&, bool) override { return refuse(); }
    Result<DiskSpace> space(const Path& path) override { return files_.space(path); }
    Result<std::unique_ptr<FileLock>> lock(const Path&) override {
      return Error{Errc::kIo, "a snapshot takes no lock"};
    }
    int opened = 0;
    std::function<void()> between;

   private:
    static Error refuse() { return {Errc::kIo, "a snapshot writes nothing"}; }
    MemoryFileSystem& files_;
  };
  MemoryFileSystem files;
  auto database = open(files);
  ASSERT_TRUE(database.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)"));
  Watched watched(files);
  watched.between = [&] {
    ASSERT_TRUE(database.query_int("PRAGMA wal_checkpoint(RESTART)"));
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES (2)"));
  };
  auto snapshot = Database::open_snapshot(watched, "state.db").value();
  EXPECT_EQ(snapshot.query_int("SELECT count(*) FROM t").value(), 2);
  EXPECT_GE(watched.opened, 6);  // three in each attempt
}

TEST(Sqlite, ServesManyConnectionsInManyThreads) {
  MemoryFileSystem files;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&files, thread] {
      const Path path = "state" + std::to_string(thread) + ".db";
      for (int i = 0; i < 20; ++i) {
        auto database = open(files, path);
        ASSERT_TRUE(database.execute("CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (1)"));
        EXPECT_EQ(database.query_int("SELECT count(*) FROM t").value(), i + 1);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace verger::sqlite
