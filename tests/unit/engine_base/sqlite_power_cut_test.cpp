// A power cut, or a failure, at each disk operation of a small workload.
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/sqlite.h"

namespace verger::sqlite {
namespace {

constexpr int kTransactions = 8;
constexpr int kRows = 3;

struct Outcome {
  int committed = 0;  ///< transactions whose commit said it was done
  bool finished = false;
};

Result<void> insert(Database& database, int number) {
  VERGER_TRY(auto transaction, Transaction::begin(database));
  VERGER_TRY(auto statement, database.prepare("INSERT INTO t VALUES (?, ?)"));
  for (int row = 0; row < kRows; ++row) {
    VERGER_RETURN_IF_ERROR(statement.bind(1, number).bind(2, std::string(1500, 'x')).run());
  }
  return transaction.commit();
}

Outcome run_workload(MemoryFileSystem& files, bool own_state) {
  Outcome outcome;
  auto opened = Database::open(files, "d/state.db", {.own_state = own_state});
  if (!opened) {
    return outcome;
  }
  auto database = *std::move(opened);
  // Checkpoints in the middle of the workload, too.
  if (!database.execute("PRAGMA wal_autocheckpoint=8; PRAGMA cache_size=4; "
                        "CREATE TABLE IF NOT EXISTS t (number INTEGER, text TEXT)")) {
    return outcome;
  }
  for (int number = 0; number < kTransactions; ++number) {
    if (!insert(database, number)) {
      return outcome;
    }
    outcome.committed = number + 1;
  }
  outcome.finished = database.close().has_value();
  return outcome;
}

void expect_committed(MemoryFileSystem& files, int committed, bool own_state) {
  auto opened = Database::open(files, "d/state.db", {.own_state = own_state});
  ASSERT_TRUE(opened) << opened.error().message;
  auto database = *std::move(opened);
  EXPECT_EQ(database.query_text("PRAGMA integrity_check").value(), "ok");
  if (committed == 0 &&
      database.query_int("SELECT count(*) FROM sqlite_schema WHERE name = 't'").value() == 0) {
    return;
  }
  const auto transactions = database.query_int("SELECT count(DISTINCT number) FROM t").value();
  // The one under way may have become durable before its commit could say so.
  EXPECT_GE(transactions, committed);
  EXPECT_LE(transactions, committed + 1);
  EXPECT_EQ(database.query_int("SELECT count(*) FROM t").value(), transactions * kRows);
}

std::unique_ptr<MemoryFileSystem> empty_disk() {
  auto files = std::make_unique<MemoryFileSystem>();
  EXPECT_TRUE(files->make_directories("d"));
  EXPECT_TRUE(files->sync_directory("/"));
  return files;
}

class SqlitePowerCut : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Journal, SqlitePowerCut, testing::Bool(),
                         [](const auto& own) { return own.param ? "WriteAhead" : "Rollback"; });

TEST_P(SqlitePowerCut, AtEachOperationLosesNoCommittedTransaction) {
  std::uint64_t cuts = 0;
  for (std::uint64_t nth = 0;; ++nth) {
    for (const auto seed : {std::optional<std::uint64_t>(), std::optional(nth),
                            std::optional(nth + 1'000'000), std::optional(nth + 2'000'000)}) {
      SCOPED_TRACE(testing::Message() << "operation " << nth << ", seed " << seed.value_or(0));
      const auto files = empty_disk();
      files->reset_count();
      files->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.number == nth) {
          files->cut_power(seed);
        }
        return std::nullopt;
      });
      const auto outcome = run_workload(*files, GetParam());
      files->set_fault_hook(nullptr);
      if (outcome.finished) {
        ASSERT_LE(files->operation_count(), nth);  // each operation was tried
        ASSERT_GT(cuts, 100U);
        files->cut_power();
        expect_committed(*files, kTransactions, GetParam());
        return;
      }
      ++cuts;
      expect_committed(*files, outcome.committed, GetParam());
      if (HasFailure()) {
        return;
      }
    }
  }
}

TEST_P(SqlitePowerCut, AfterAFailedOperationLosesNoCommittedTransaction) {
  for (const auto code : {Errc::kIo, Errc::kNoSpace}) {
    for (std::uint64_t nth = 0;; ++nth) {
      SCOPED_TRACE(testing::Message() << "operation " << nth << ", " << to_string(code));
      const auto files = empty_disk();
      files->reset_count();
      bool failed = false;
      files->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.number != nth) {
          return std::nullopt;
        }
        failed = true;
        return Error{code, "injected"};
      });
      const auto outcome = run_workload(*files, GetParam());
      files->set_fault_hook(nullptr);
      if (!failed) {
        EXPECT_TRUE(outcome.finished);
        break;
      }
      const auto dead_process = files->clone();
      files->cut_power(nth);
      expect_committed(*files, outcome.committed, GetParam());
      expect_committed(*dead_process, outcome.committed, GetParam());
      if (HasFailure()) {
        return;
      }
    }
  }
}

}  // namespace
}  // namespace verger::sqlite
