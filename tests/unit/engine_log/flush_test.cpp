// A flush in three parts, beside further appends.
#include <gtest/gtest.h>
#include <thread>

#include "tests/unit/engine_log/small_log.h"

namespace verger::log {
namespace {

TEST(FlushInParts, MakesVisibleWhatWasThereWhenItBegan) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 200);
  const auto flush = value(log->begin_flush());
  ASSERT_NE(flush, nullptr);
  disk.append_sized(*log, 300);
  ok(flush->sync());
  EXPECT_EQ(log->end().value(), 0) << "it is not finished";
  EXPECT_EQ(disk.checkpoint("writer.chk"), 200);
  ok(log->finish_flush());
  EXPECT_EQ(log->end().value(), 200);
  EXPECT_EQ(log->append_position().value(), 500);
  ok(log->flush());
  EXPECT_EQ(log->end().value(), 500);
  EXPECT_EQ(disk.positions(*log), (std::vector<std::int64_t>{0, 200}));
}

TEST(FlushInParts, IsNothingWhereNothingWasAppended) {
  SmallLog disk;
  const auto log = disk.open();
  EXPECT_EQ(value(log->begin_flush()), nullptr);
  ok(log->finish_flush());
}

TEST(FlushInParts, LosesNoSyncedRecordWithThePower) {
  SmallLog disk;
  auto log = disk.open();
  disk.append_sized(*log, 200);
  const auto flush = value(log->begin_flush());
  disk.append_sized(*log, 300);
  ok(flush->sync());
  disk.files.cut_power();
  log.reset();
  EXPECT_EQ(disk.open()->end().value(), 200);
}

TEST(FlushInParts, IsFinishedBeforeItsChunkIsCompleted) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 1000);
  const auto flush = value(log->begin_flush());
  disk.append_sized(*log, 1500);  // into the next chunk
  EXPECT_EQ(log->end().value(), SmallLog::kChunkSize);
  ok(flush->sync());
  ok(log->finish_flush());
  EXPECT_EQ(disk.checkpoint("writer.chk"), SmallLog::kChunkSize) << "not set back by the late sync";
  ok(log->flush());
  EXPECT_EQ(log->end().value(), SmallLog::kChunkSize + 1500);
}

TEST(FlushInParts, IsFinishedBeforeTheLogIsCut) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 200);
  const auto flush = value(log->begin_flush());
  disk.append_sized(*log, 300);
  ok(log->truncate(LogPosition(200)));
  ok(flush->sync());
  ok(log->finish_flush());
  EXPECT_EQ(log->end().value(), 200);
  EXPECT_EQ(log->append_position().value(), 200);
}

TEST(FlushInParts, FailsTheLogWithTheDisk) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 200);
  const auto flush = value(log->begin_flush());
  disk.files.set_fault_hook([](const DiskOperation&) { return Error{Errc::kIo, "broken"}; });
  EXPECT_FALSE(flush->sync().has_value());
  disk.files.set_fault_hook({});
  EXPECT_EQ(log->finish_flush().error().code, Errc::kIo) << "a second sync would prove nothing";
  EXPECT_EQ(log->end().value(), 0);
  EXPECT_FALSE(log->begin_flush().has_value());
}

TEST(FlushInParts, SyncsOnceForAllThatWait) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 200);
  const auto flush = value(log->begin_flush());
  disk.files.reset_count();
  std::thread other([&] { ok(flush->sync()); });
  ok(log->finish_flush());
  other.join();
  EXPECT_EQ(disk.files.operation_count(), 3U) << "the chunk's sync, writer.chk, its sync";
  EXPECT_EQ(log->end().value(), 200);
}

}  // namespace
}  // namespace verger::log
