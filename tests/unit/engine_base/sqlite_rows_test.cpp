#include "engine/base/sqlite_rows.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/results.h"

namespace verger::sqlite {
namespace {

class MemoryRowsTest : public testing::Test {
 protected:
  MemoryRowsTest() {
    ok(database.execute("CREATE TABLE t (key INTEGER PRIMARY KEY, name TEXT, more INTEGER)"));
  }

  MemoryFileSystem files;
  Database database = value(Database::open(files, "/a.db"));
  MemoryRows rows = value(MemoryRows::create(database, "given", 3));
};

TEST_F(MemoryRowsTest, AreInsertedWithOneStatement) {
  auto insert = value(database.prepare("INSERT INTO t SELECT c0, c1, c2 FROM given"));
  const std::vector<std::string> names = {"", "a", std::string("b\0c", 3)};
  const auto give = [&](std::size_t row, int column) -> MemoryRows::Value {
    switch (column) {
      case 0:
        return static_cast<std::int64_t>(row) - 1;
      case 1:
        return std::string_view(names[row]);
      default:
        return row == 1 ? MemoryRows::Value(std::int64_t{7}) : MemoryRows::Value();
    }
  };
  EXPECT_FALSE(value(rows.run(insert, {.count = names.size(), .value = give, .pause = {}})));
  EXPECT_EQ(database.changes(), 3);
  auto all = value(database.prepare("SELECT key, name, more FROM t ORDER BY key"));
  for (std::size_t n = 0; n < names.size(); ++n) {
    ASSERT_TRUE(value(all.step()));
    EXPECT_EQ(all.column_int(0), static_cast<std::int64_t>(n) - 1);
    EXPECT_EQ(all.column_text(1), names[n]);
    EXPECT_EQ(all.column_is_null(2), n != 1);
  }
  EXPECT_FALSE(value(all.step()));
}

TEST_F(MemoryRowsTest, AreOthersInEachRun) {
  auto insert = value(database.prepare("INSERT OR IGNORE INTO t SELECT c0, c1, c2 FROM given"));
  auto find = value(database.prepare("SELECT 1 FROM given JOIN t ON key = c0 LIMIT 1"));
  const auto from = [](std::int64_t first) {
    return MemoryRows::Rows{.count = 2,
                            .value = [first](std::size_t row, int column) -> MemoryRows::Value {
                              return column == 0
                                         ? MemoryRows::Value(first + static_cast<std::int64_t>(row))
                                         : MemoryRows::Value();
                            },
                            .pause = {}};
  };
  value(rows.run(insert, from(1)));
  value(rows.run(insert, from(2)));
  EXPECT_EQ(database.changes(), 1) << "2 is there already";
  EXPECT_EQ(value(database.query_int("SELECT count(*) FROM t")), 3);
  EXPECT_TRUE(value(rows.run(find, from(3))));
  EXPECT_FALSE(value(rows.run(find, from(4))));
  EXPECT_FALSE(value(rows.run(insert, {})));
}

TEST_F(MemoryRowsTest, EndWithTheErrorOfAPause) {
  auto insert = value(database.prepare("INSERT INTO t SELECT c0, c1, c2 FROM given"));
  int pauses = 0;
  const auto outcome =
      rows.run(insert, {.count = 10'000,
                        .value = [](std::size_t row, int column) -> MemoryRows::Value {
                          return column == 0 ? MemoryRows::Value(static_cast<std::int64_t>(row))
                                             : MemoryRows::Value();
                        },
                        .pause = [&]() -> Result<void> {
                          if (++pauses == 3) {
                            return Error{Errc::kCancelled, "stopped"};
                          }
                          return {};
                        }});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kCancelled);
  EXPECT_EQ(pauses, 3);
  EXPECT_EQ(value(database.query_int("SELECT count(*) FROM t")), 0) << "outside of a transaction";
}

TEST_F(MemoryRowsTest, AreRefusedWhereTheTableRefusesThem) {
  ok(database.execute("CREATE TABLE strict_one (key INTEGER PRIMARY KEY, name TEXT NOT NULL)"));
  auto insert = value(database.prepare("INSERT INTO strict_one SELECT c0, c1 FROM given"));
  const auto outcome =
      rows.run(insert, {.count = 2,
                        .value = [](std::size_t row, int column) -> MemoryRows::Value {
                          return column == 0 ? MemoryRows::Value(static_cast<std::int64_t>(row))
                                             : MemoryRows::Value();
                        },
                        .pause = {}});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kConflict);
}

}  // namespace
}  // namespace verger::sqlite
