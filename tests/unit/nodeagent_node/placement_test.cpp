#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "nodeagent/node/replication_placement.h"

namespace verger::node::replication {
namespace {

constexpr std::int32_t kChunk = 4096;

/// A log on a disk in memory; copies of it diverge.
class Copy {
 public:
  Copy() : disk_(std::make_unique<MemoryFileSystem>()) { open(); }
  /// What is on the disk of `other` now.
  explicit Copy(Copy& other) {
    other.log.reset();
    disk_ = other.disk_->clone();
    other.open();
    open();
  }

  LogPosition epoch(int number) {
    EXPECT_TRUE(log->append_epoch(EpochNumber(number), random_.uuid()).has_value());
    return log->epochs().last()->position;
  }
  void write(int count = 1) {
    for (int i = 0; i < count; ++i) {
      log::Prepare prepare;
      prepare.flags = log::prepare_flags::kData | log::prepare_flags::kTransactionBegin |
                      log::prepare_flags::kTransactionEnd | log::prepare_flags::kIsCommitted;
      prepare.position = kNoPosition;
      prepare.transaction_position = kNoPosition;
      prepare.expected_version = version_++;
      prepare.stream = "s";
      prepare.event_id = random_.uuid();
      prepare.correlation_id = random_.uuid();
      prepare.timestamp = Ticks(1);
      prepare.type = "t";
      ASSERT_TRUE(log->append(std::span(&prepare, 1)).has_value());
      ASSERT_TRUE(log->flush().has_value());
    }
  }
  void complete() {
    ASSERT_TRUE(log->complete_chunk().has_value());
    ASSERT_TRUE(log->flush().has_value());
  }
  Subscribe subscription(LogPosition committed = LogPosition(0)) const {
    Subscribe request;
    request.chunk_size = log->chunk_size();
    request.epochs = epoch_claims(*log);
    request.writer = record_end_before(*log, log->end());
    request.committed = committed;
    return request;
  }

  std::unique_ptr<log::TransactionLog> log;

 private:
  void open() {
    log::LogOptions options;
    options.access = log::Access::kWrite;
    options.chunk_size = kChunk;
    options.create = true;
    options.assume_stopped = true;
    auto opened =
        log::TransactionLog::open(*disk_, "/db", options, system_clock(), random_, null_log());
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    log = *std::move(opened);
  }

  std::unique_ptr<MemoryFileSystem> disk_;
  SeededRandom random_{++seed_};
  std::int64_t version_ = -1;
  static inline std::uint64_t seed_ = 0;
};

void expect(const Placement& placement, Placement::Kind kind, LogPosition position) {
  EXPECT_EQ(static_cast<int>(placement.kind), static_cast<int>(kind)) << placement.reason;
  EXPECT_EQ(placement.position, position);
}

TEST(Placement, AnEmptyFollowerStartsAtTheBeginning) {
  Copy leader;
  leader.epoch(0);
  Copy follower;
  expect(place_follower(*leader.log, follower.subscription()), Placement::Kind::kStart,
         LogPosition(0));
}

TEST(Placement, AFollowerThatIsOnlyBehindContinuesWhereItIs) {
  Copy leader;
  leader.epoch(0);
  leader.write();
  Copy follower(leader);
  leader.write(40);
  leader.epoch(1);
  expect(place_follower(*leader.log, follower.subscription()), Placement::Kind::kStart,
         follower.log->end());
}

TEST(Placement, RecordsThatOnlyTheFollowerHasAreCutAtTheEndOfTheCommonEpoch) {
  Copy old_leader;
  old_leader.epoch(0);
  old_leader.write(2);
  Copy leader(old_leader);
  const auto common = leader.log->end();
  old_leader.write(3);
  leader.epoch(1);
  leader.write(9);
  expect(place_follower(*leader.log, old_leader.subscription()), Placement::Kind::kTruncate,
         common);
}

TEST(Placement, AnEpochThatWasNeverCommittedIsCut) {
  Copy a;
  a.epoch(0);
  a.write(2);
  Copy b(a);
  const auto lost = a.epoch(1);
  a.write(1);
  b.epoch(2);
  expect(place_follower(*b.log, a.subscription()), Placement::Kind::kTruncate, lost);
}

TEST(Placement, AChunkThatOnlyTheFollowerCompletedIsOpenedAgain) {
  Copy old_leader;
  old_leader.epoch(0);
  old_leader.write(2);
  Copy leader(old_leader);
  const auto data_end = leader.log->end();
  old_leader.complete();
  ASSERT_EQ(old_leader.log->end(), LogPosition(kChunk));
  leader.epoch(1);
  leader.write(60);
  ASSERT_GT(leader.log->end(), LogPosition(kChunk));
  expect(place_follower(*leader.log, old_leader.subscription()), Placement::Kind::kTruncate,
         data_end);
}

TEST(Placement, AChunkThatBothCompletedAtTheSamePlaceStays) {
  Copy leader;
  leader.epoch(0);
  leader.write(2);
  leader.complete();
  Copy follower(leader);
  leader.epoch(1);
  expect(place_follower(*leader.log, follower.subscription()), Placement::Kind::kStart,
         LogPosition(kChunk));
}

TEST(Placement, ACommittedChunkStaysCompletedWhenOnlyWhatFollowsItIsCut) {
  Copy old_leader;
  old_leader.epoch(0);
  old_leader.write(2);
  const auto data_end = old_leader.log->end();
  old_leader.complete();
  Copy leader(old_leader);
  old_leader.write(3);
  leader.epoch(1);
  expect(place_follower(*leader.log, old_leader.subscription(LogPosition(kChunk))),
         Placement::Kind::kTruncate, LogPosition(kChunk));
  expect(place_follower(*leader.log, old_leader.subscription()), Placement::Kind::kTruncate,
         data_end);
}

TEST(Placement, AFollowerBeforeTheLeadersChunkCompletionIsNotCut) {
  Copy leader;
  leader.epoch(0);
  leader.write(2);
  Copy follower(leader);
  leader.complete();
  leader.epoch(1);
  expect(place_follower(*leader.log, follower.subscription()), Placement::Kind::kStart,
         follower.log->end());
}

TEST(Placement, ALogOfAnotherClusterIsRefusedOnceItHasCommittedData) {
  Copy leader;
  leader.epoch(0);
  Copy stranger;
  stranger.epoch(0);
  stranger.write();
  expect(place_follower(*leader.log, stranger.subscription()), Placement::Kind::kTruncate,
         LogPosition(0));
  expect(place_follower(*leader.log, stranger.subscription(stranger.log->end())),
         Placement::Kind::kRefuse, LogPosition(0));
}

TEST(Placement, DataWithoutEpochsAndOtherChunkSizesAreRefused) {
  Copy leader;
  leader.epoch(0);
  Copy follower;
  follower.write();
  expect(place_follower(*leader.log, follower.subscription()), Placement::Kind::kRefuse,
         LogPosition(0));
  auto request = leader.subscription();
  request.chunk_size = kChunk * 2;
  expect(place_follower(*leader.log, request), Placement::Kind::kRefuse, LogPosition(0));
}

}  // namespace
}  // namespace verger::node::replication
