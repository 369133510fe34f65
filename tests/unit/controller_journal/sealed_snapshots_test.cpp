#include "controller/journal/sealed_snapshots.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/sqlite.h"

namespace verger::controller {
namespace {

/// A journal with one stream of three events.
class SealedSnapshotsTest : public ::testing::Test {
 protected:
  SealedSnapshotsTest() {
    EXPECT_TRUE(disk_.make_directories("/j").has_value());
    open();
    EXPECT_TRUE(
        journal_
            ->append("run/1", kAnyRevision, {NewEvent{"a"}, NewEvent{"b"}, NewEvent{"c"}}, epoch_)
            .has_value());
  }
  std::unique_ptr<Journal> plain() {
    return open_sqlite_journal(disk_, "/j/journal.db", system_clock()).value();
  }
  void open() {
    journal_.reset();
    journal_ = std::make_unique<SealedSnapshots>(plain(), null_log());
    epoch_ = journal_->begin_epoch("test").value();
  }
  void change_the_file(const std::string& sql) {
    journal_.reset();
    auto database = sqlite::Database::open(disk_, "/j/journal.db").value();
    ASSERT_TRUE(database.execute(sql).has_value());
  }
  static Snapshot taken() { return {"run/1", Revision(3), R"({"status":"done"})", R"({"x":1})"}; }

  MemoryFileSystem disk_;
  std::unique_ptr<Journal> journal_;
  ControllerEpoch epoch_;
};

TEST_F(SealedSnapshotsTest, CountAfterARestart) {
  ASSERT_TRUE(journal_->save_snapshot(taken(), epoch_).has_value());
  open();
  const auto kept = journal_->snapshot("run/1").value();
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->state, taken().state);
  EXPECT_EQ(journal_->current_snapshots("run/").value().size(), 1U);
  EXPECT_EQ(journal_->verify().value(), journal_->last_sequence().value());
}

TEST_F(SealedSnapshotsTest, OneThatWasChangedCountsAsNone) {
  for (const auto* sql : {R"(UPDATE snapshots SET state = '{"x":2}')",
                          R"(UPDATE snapshots SET summary = '{"status":"failed"}')"}) {
    ASSERT_TRUE(journal_->save_snapshot(taken(), epoch_).has_value());
    change_the_file(sql);
    open();
    EXPECT_FALSE(journal_->snapshot("run/1").value().has_value()) << sql;
  }
  EXPECT_TRUE(journal_->current_snapshots("run/").value().empty());
}

TEST_F(SealedSnapshotsTest, AnUnsealedOneCountsAsNone) {
  journal_.reset();
  {
    const auto older_version = plain();
    const auto epoch = older_version->begin_epoch("older").value();
    ASSERT_TRUE(older_version->save_snapshot(taken(), epoch).has_value());
  }
  open();
  EXPECT_FALSE(journal_->snapshot("run/1").value().has_value());
  ASSERT_TRUE(journal_->save_snapshot(taken(), epoch_).has_value());
  EXPECT_TRUE(journal_->snapshot("run/1").value().has_value());
}

TEST_F(SealedSnapshotsTest, ASealWithoutItsSnapshotLeavesTheOneBefore) {
  ASSERT_TRUE(journal_->save_snapshot(taken(), epoch_).has_value());
  // Sealed, and not kept: the stream is at another revision.
  EXPECT_FALSE(journal_->save_snapshot({"run/1", Revision(9), "{}", "{}"}, epoch_).has_value());
  open();
  EXPECT_TRUE(journal_->snapshot("run/1").value().has_value());
}

}  // namespace
}  // namespace verger::controller
