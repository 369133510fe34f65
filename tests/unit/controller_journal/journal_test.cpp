#include "controller/journal/journal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/journal/sqlite_journal.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/sqlite.h"
#include "tests/support/journal/journal_contract.h"

namespace verger::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// SQLite on a disk in memory.
class SqliteStore final : public JournalStore {
 public:
  SqliteStore() {
    EXPECT_TRUE(disk_.make_directories("/state").has_value());
    EXPECT_TRUE(disk_.sync_directory("/").has_value());
  }
  Result<std::unique_ptr<Journal>> open(Clock& clock) override {
    return open_sqlite_journal(disk_, "/state/journal.db", clock);
  }
  MemoryFileSystem& disk() { return disk_; }

 private:
  MemoryFileSystem disk_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, JournalContract,
                         ::testing::Values([] { return std::make_unique<SqliteStore>(); }),
                         [](const auto&) { return std::string("Disk"); });

class JournalTest : public OpenJournal {
 protected:
  JournalTest() : JournalTest(std::make_unique<SqliteStore>()) {}
  void SetUp() override { open(); }

  MemoryFileSystem& disk_;

 private:
  explicit JournalTest(std::unique_ptr<SqliteStore> store) : disk_(store->disk()) {
    store_ = std::move(store);
  }
};

TEST_F(JournalTest, ChainNoticesAChangedEvent) {
  for (const auto* type : {"a", "b", "c"}) {
    ASSERT_TRUE(add("s", type).has_value());
  }
  EXPECT_EQ(journal_->verify().value(), Sequence(3));
  journal_.reset();
  {
    auto database = sqlite::Database::open(disk_, "/state/journal.db");
    ASSERT_TRUE(database.has_value());
    ASSERT_TRUE(
        database->execute("UPDATE events SET data = '{\"a\":2}' WHERE sequence = 2").has_value());
  }
  open();
  const auto verified = journal_->verify();
  ASSERT_FALSE(verified.has_value());
  EXPECT_EQ(verified.error().code, Errc::kCorruption);
  EXPECT_THAT(verified.error().message, HasSubstr("event 2 (b in s)"));
}

TEST_F(JournalTest, SaysThatAnotherVergerdUsesTheDirectory) {
  const auto second = open_sqlite_journal(disk_, "/state/journal.db", clock_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::kRefused);
  EXPECT_THAT(second.error().message, HasSubstr("/state: another vergerd uses this directory"));
}

TEST_F(JournalTest, TakesAnEpochAboveAFarOneInOneCommit) {
  journal_.reset();
  const auto epochs = [this] {
    auto database = sqlite::Database::open(disk_, "/state/journal.db");
    return database->query_int("SELECT count(*) FROM epochs").value();
  };
  const auto before = epochs();
  auto opened =
      open_sqlite_journal_above(disk_, "/state/journal.db", clock_, ControllerEpoch(90'000));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ((*opened)->begin_epoch("x").value(), ControllerEpoch(90'001));
  EXPECT_EQ((*opened)->begin_epoch("y").value(), ControllerEpoch(90'002));
  opened->reset();
  EXPECT_EQ(epochs(), before + 2);
  // An older number changes nothing.
  opened = open_sqlite_journal_above(disk_, "/state/journal.db", clock_, ControllerEpoch(7));
  EXPECT_EQ((*opened)->begin_epoch("z").value(), ControllerEpoch(90'003));
}

TEST_F(JournalTest, RefusesANewerSchema) {
  journal_.reset();
  {
    auto database = sqlite::Database::open(disk_, "/state/journal.db");
    ASSERT_TRUE(database->execute("PRAGMA user_version = 99").has_value());
  }
  const auto opened = open_sqlite_journal(disk_, "/state/journal.db", clock_);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::kUnsupported);
}

TEST_F(JournalTest, ASnapshotOfOtherEventsCountsAsNone) {
  ASSERT_TRUE(add("s", "a").has_value());
  ASSERT_TRUE(journal_->save_snapshot({"s", Revision(1), "x", "y"}, epoch_).has_value());
  journal_.reset();
  {
    auto database = sqlite::Database::open(disk_, "/state/journal.db");
    ASSERT_TRUE(database->execute("UPDATE events SET hash = x'00'").has_value());
  }
  open();
  EXPECT_FALSE(journal_->snapshot("s").value().has_value());
  EXPECT_TRUE(journal_->current_snapshots("").value().empty());
}

TEST_F(JournalTest, OpensAJournalOfSchemaOne) {
  ASSERT_TRUE(add("s", "a").has_value());
  journal_.reset();
  {
    auto database = sqlite::Database::open(disk_, "/state/journal.db");
    ASSERT_TRUE(
        database->execute("DROP TABLE snapshots; DROP TABLE removed; PRAGMA user_version = 1")
            .has_value());
  }
  open();
  EXPECT_THAT(types("s"), ElementsAre("a"));
  EXPECT_TRUE(journal_->save_snapshot({"s", Revision(1), "x", "y"}, epoch_).has_value());
  EXPECT_EQ(journal_->snapshot("s").value()->state, "y");
}

TEST_F(JournalTest, AcknowledgedEventsSurviveAPowerCutAtAnyDiskOperation) {
  journal_.reset();
  int cuts = 0;
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    auto disk = std::make_unique<MemoryFileSystem>();
    ASSERT_TRUE(disk->make_directories("/state").has_value());
    ASSERT_TRUE(disk->sync_directory("/").has_value());
    CountingClock clock;
    bool cut = false;
    std::int64_t acknowledged = 0;
    std::int64_t epoch_taken = 0;
    {
      disk->reset_count();
      disk->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (cut || operation.number >= nth) {
          cut = true;
          return Error{Errc::kIo, "the power is gone"};
        }
        return std::nullopt;
      });
      auto journal = open_sqlite_journal(*disk, "/state/journal.db", clock);
      if (journal) {
        if (const auto epoch = (*journal)->begin_epoch("x")) {
          epoch_taken = epoch->value();
          for (int i = 0; i < 6; ++i) {
            if (!(*journal)->append("s", kAnyRevision, {{fmt::format("e{}", i), "{}"}}, *epoch)) {
              break;
            }
            ++acknowledged;
          }
        }
      }
    }
    disk->set_fault_hook(nullptr);
    disk->cut_power(nth);
    auto again = open_sqlite_journal(*disk, "/state/journal.db", clock);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    const auto events = (*again)->read("s");
    ASSERT_TRUE(events.has_value());
    // What was answered is there; at most the one in flight besides.
    ASSERT_GE(static_cast<std::int64_t>(events->size()), acknowledged);
    ASSERT_LE(static_cast<std::int64_t>(events->size()), acknowledged + 1);
    ASSERT_TRUE((*again)->verify().has_value());
    ASSERT_GT((*again)->begin_epoch("y")->value(), epoch_taken);
    if (!cut) {
      break;
    }
    ++cuts;
  }
  EXPECT_GT(cuts, 20);
}

TEST_F(JournalTest, SaysUnknownWhenTheSyncOfACommitFailsAndTheWriterFindsOut) {
  StreamWriter writer(*journal_, "s", epoch_, Revision(0));
  ASSERT_TRUE(writer.append({{"a", "{}"}}).has_value());
  bool failed = false;
  disk_.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (!failed && operation.kind == "sync") {
      failed = true;
      return Error{Errc::kIo, "sync failed"};
    }
    return std::nullopt;
  });
  const auto direct = journal_->append("s", Revision(1), {{"b", "{}"}}, epoch_);
  ASSERT_TRUE(failed);
  ASSERT_FALSE(direct.has_value());
  EXPECT_EQ(direct.error().code, Errc::kUnknownOutcome);
  // In each case the journal continues from what is there.
  const auto there = journal_->revision("s");
  ASSERT_TRUE(there.has_value());
  StreamWriter second(*journal_, "s", epoch_, *there);
  failed = false;
  const auto written = second.append({{"c", "{}"}});
  ASSERT_TRUE(failed);
  if (written) {
    EXPECT_EQ(types("s").back(), "c");
  } else {
    EXPECT_EQ(written.error().code, Errc::kUnavailable) << written.error().message;
    EXPECT_NE(types("s").back(), "c");
  }
  ASSERT_TRUE(journal_->verify().has_value());
  disk_.set_fault_hook(nullptr);  // the journal outlives what it refers to
}

TEST_F(JournalTest, AFullDiskLosesNothingAndCanBeReadAndWrittenLater) {
  ASSERT_TRUE(add("s", "a").has_value());
  disk_.set_free_space(0);
  const auto full = add("s", "b");
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Errc::kNoSpace);
  EXPECT_THAT(types("s"), ElementsAre("a"));
  disk_.set_free_space(std::nullopt);
  ASSERT_TRUE(add("s", "c").has_value());
  EXPECT_THAT(types("s"), ElementsAre("a", "c"));
}

}  // namespace
}  // namespace verger::controller
