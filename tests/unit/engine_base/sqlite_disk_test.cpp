// SQLite on the machine's disk, with what a real server left there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "engine/base/digest.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/sqlite.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_directory.h"

namespace verger::sqlite {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The state database of a server that was killed in a scavenge: all of it is in the -wal file.
class KilledServer : public testing::Test {
 protected:
  KilledServer() {
    test::unpack_fixture("scavenge/killed-and-resumed/interrupted.tar.zst", directory_.path());
  }
  Path state() const { return directory_.path() / "index/scavenging/scavenging.db"; }
  std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> digests;
    for (const auto& entry : disk_.list(state().parent_path()).value()) {
      digests[entry.name] =
          to_hex(md5(read_file(disk_, state().parent_path() / entry.name).value()));
    }
    return digests;
  }
  static void expect_the_servers_rows(Database& database) {
    EXPECT_EQ(database.query_int("PRAGMA page_size").value(), 16384);
    EXPECT_EQ(database.query_text("PRAGMA integrity_check").value(), "ok");
    EXPECT_EQ(database.query_int("SELECT count(*) FROM HashUsers").value(), 61);
    EXPECT_EQ(database.query_int("SELECT count(*) FROM HashCollisions").value(), 12);
    EXPECT_EQ(database.query_int("SELECT count(*) FROM ChunkTimeStampRanges").value(), 7);
    EXPECT_THAT(database.query_text("SELECT value FROM Checkpoint").value().value(),
                HasSubstr("\"checkpointStage\":\"ExecutingChunks\",\"doneLogicalChunkNumber\":1"));
  }

  test::TempDirectory directory_;
  FileSystem& disk_ = posix_file_system();
};

TEST_F(KilledServer, IsReadWithoutChangingAByte) {
  const auto before = content();
  ASSERT_EQ(before.size(), 3U);
  {
    auto database = Database::open(disk_, state(), {.read_only = true, .own_state = false}).value();
    expect_the_servers_rows(database);
  }
  EXPECT_EQ(content(), before);
}

TEST_F(KilledServer, IsTakenOverForWriting) {
  {
    auto database = Database::open(disk_, state(), {.create = false, .own_state = false}).value();
    expect_the_servers_rows(database);
    EXPECT_EQ(database.query_text("PRAGMA journal_mode").value(), "wal");
    ASSERT_TRUE(database.execute("PRAGMA synchronous=NORMAL; DELETE FROM HashCollisions"));
    ASSERT_TRUE(database.close());
  }
  const auto after = content();
  ASSERT_EQ(after.size(), 1U);  // the log is merged; the stale -shm went with it
  // SQLite without our VFS reads it as well.
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open_v2(state().c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(raw,
                               "SELECT (SELECT count(*) FROM HashUsers), "
                               "(SELECT count(*) FROM HashCollisions)",
                               -1, &statement, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(statement), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(statement, 0), 61);
  EXPECT_EQ(sqlite3_column_int(statement, 1), 0);
  // While it has the database, we keep out; but a snapshot can be taken.
  const auto refused = Database::open(disk_, state(), {.own_state = false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  auto snapshot = Database::open_snapshot(disk_, state()).value();
  EXPECT_EQ(snapshot.query_int("SELECT count(*) FROM HashUsers").value(), 61);
  sqlite3_finalize(statement);
  sqlite3_close(raw);
}

TEST_F(KilledServer, KeepsOtherProgramsOut) {
  auto database = Database::open(disk_, state(), {.own_state = false}).value();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open_v2(state().c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(raw, "SELECT count(*) FROM HashUsers", nullptr, nullptr, nullptr),
            SQLITE_BUSY);
  sqlite3_close(raw);
  expect_the_servers_rows(database);
}

TEST_F(KilledServer, IsTheSameInMemory) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.import_tree(disk_, directory_.path(), "db"));
  auto database =
      Database::open(files, "db/index/scavenging/scavenging.db", {.own_state = false}).value();
  expect_the_servers_rows(database);
}

TEST(SqliteOnDisk, RecoversAHotRollbackJournal) {
  const test::TempDirectory directory;
  MemoryFileSystem files;
  auto database = Database::open(files, "state.db", {.own_state = false}).value();
  ASSERT_TRUE(database.execute("PRAGMA cache_size=5; CREATE TABLE t (a)"));
  ASSERT_TRUE(database.execute("BEGIN; INSERT INTO t VALUES (1); COMMIT"));
  ASSERT_TRUE(database.execute("BEGIN"));
  for (int i = 0; i < 100; ++i) {  // more than the cache holds: pages reach the file uncommitted
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES (zeroblob(4000))"));
  }
  const auto crashed = files.clone();
  ASSERT_TRUE(crashed->exists("state.db-journal").value());
  auto snapshot = Database::open_snapshot(*crashed, "state.db").value();
  EXPECT_EQ(snapshot.query_int("SELECT count(*) FROM t").value(), 1);
  auto recovered = Database::open(*crashed, "state.db", {.own_state = false}).value();
  EXPECT_EQ(recovered.query_int("SELECT count(*) FROM t").value(), 1);
  EXPECT_EQ(recovered.query_text("PRAGMA integrity_check").value(), "ok");
}

}  // namespace
}  // namespace verger::sqlite
