#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Commit : public StreamsTest {
 protected:
  /// Opens the closed database as a cluster member does: only what chaser.chk says is committed.
  std::unique_ptr<Database> open_as_member() {
    auto opened =
        Database::open(disk, "/db", test::database_options(builder.options(), log::Access::kWrite),
                       /*commit_all=*/false, builder.clock(), builder.random(), null_log());
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
};

TEST_F(Commit, MakesWritesVisibleInOrder) {
  const auto first = append("s", kExpectAny, 2);
  const auto second = append("s", kExpectAny, 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(forward("s").status, StreamStatus::kNoStream);
  EXPECT_EQ(database().stream_index().memory_entry_count(), 0U);
  ASSERT_TRUE(database().commit_up_to(first->end));
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1));
  EXPECT_EQ(database().committed(), first->end);
  ASSERT_TRUE(database().commit_up_to(second->end));
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1, 2));
}

TEST_F(Commit, NeverGoesBack) {
  const auto outcome = builder.write("s");
  ASSERT_TRUE(database().commit_up_to(LogPosition(0)));
  EXPECT_EQ(database().committed(), outcome.end);
}

TEST_F(Commit, WhatWasNotCommittedStaysInvisibleAfterReopening) {
  builder.write("s", 2);
  ASSERT_TRUE(append("s", 1));
  builder.close();
  const auto member = open_as_member();
  ASSERT_NE(member, nullptr);
  EXPECT_THAT(numbers(*member->read_forward("s", EventNumber(0), 10)), ElementsAre(0, 1));
  // Expected versions see it all the same.
  EXPECT_EQ(code(member->append("s", 1, {builder.event()})), Errc::kConflict);
  const auto next = member->append("s", 2, {builder.event()});
  ASSERT_TRUE(next) << next.error().error.message;
  ASSERT_TRUE(member->commit_up_to(next->end));
  EXPECT_THAT(numbers(*member->read_forward("s", EventNumber(0), 10)), ElementsAre(0, 1, 2, 3));
}

TEST_F(Commit, IndexesWhatOthersAppendedToTheLog) {
  builder.write("s");
  ASSERT_TRUE(database().transaction_log().append_epoch(EpochNumber(0), builder.random().uuid()));
  const auto write = append("s", 0);
  ASSERT_TRUE(write);
  EXPECT_EQ(forward("$epoch-information").status, StreamStatus::kNoStream);
  ASSERT_TRUE(database().commit_up_to(write->end));
  EXPECT_THAT(numbers(forward("$epoch-information")), ElementsAre(0));
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1));
}

/// Begins the follower's log with the leader's first chunk.
void begin_as_follower(const Database& leader, Database& follower) {
  const auto header = leader.transaction_log().chunks().front()->header();
  const auto started = follower.transaction_log().start_replicated_chunk(header);
  ASSERT_TRUE(started) << started.error().message;
}

/// The bytes a leader sends for [from, to) of its log.
Bytes framed(const Database& leader, LogPosition from, LogPosition to) {
  Bytes bytes;
  log::LogCursor cursor(leader.transaction_log(), from, to);
  for (auto record = cursor.next(); record && *record; record = cursor.next()) {
    append_bytes(bytes, (*record)->framed);
  }
  return bytes;
}

TEST_F(Commit, AFollowerShowsTheLeadersRecordsOnceCommitted) {
  builder.write("s", 3);
  builder.metadata("s", R"({"$maxCount":2})");
  builder.transaction("t", 2);
  MemoryFileSystem other_disk;
  test::DatabaseBuilder follower(other_disk, "/db", builder.options());
  begin_as_follower(database(), follower.database());
  const auto end = database().committed();
  ASSERT_TRUE(follower.database().append_replicated(framed(database(), LogPosition(0), end)));
  EXPECT_EQ(follower.database().transaction_log().end(), end);
  EXPECT_EQ(follower.database().read_forward("s", EventNumber(0), 10)->status,
            StreamStatus::kNoStream);
  ASSERT_TRUE(follower.database().commit_up_to(end));
  EXPECT_THAT(numbers(*follower.database().read_forward("s", EventNumber(0), 10)),
              ElementsAre(1, 2));
  EXPECT_THAT(numbers(*follower.database().read_forward("t", EventNumber(0), 10)),
              ElementsAre(0, 1));
}

TEST_F(Commit, ANewLeaderKnowsTheIdsItReceivedAsFollower) {
  const std::vector events{builder.event(), builder.event()};
  builder.write("s", events);
  MemoryFileSystem other_disk;
  test::DatabaseBuilder follower(other_disk, "/db", builder.options());
  begin_as_follower(database(), follower.database());
  ASSERT_TRUE(follower.database().append_replicated(
      framed(database(), LogPosition(0), database().committed())));
  const auto again = follower.database().append("s", kExpectAny, events);
  ASSERT_TRUE(again) << again.error().error.message;
  EXPECT_TRUE(again->repeated);
}

TEST_F(Commit, AFormerLeaderSeesWhatTheNextOneWrote) {
  builder.write("s", 1);
  const auto shared = database().committed();
  MemoryFileSystem other_disk;
  test::DatabaseBuilder other(other_disk, "/db", builder.options());
  begin_as_follower(database(), other.database());
  ASSERT_TRUE(other.database().append_replicated(framed(database(), LogPosition(0), shared)));
  ASSERT_TRUE(other.database().commit_up_to(shared));
  other.write("s", 1);
  ASSERT_TRUE(
      database().append_replicated(framed(other.database(), shared, other.database().committed())));
  ASSERT_TRUE(database().commit_up_to(other.database().committed()));
  EXPECT_EQ(code(append("s", 0)), Errc::kConflict);
  const auto next = append("s", 1);
  ASSERT_TRUE(next) << next.error().error.message;
  EXPECT_EQ(next->first.value(), 2);
}

class Truncate : public Commit {};

TEST_F(Truncate, ForgetsWritesInFlight) {
  const auto kept = builder.write("s", 2);
  const auto lost = append("s", 1, {builder.event()});
  ASSERT_TRUE(lost);
  ASSERT_TRUE(database().truncate(kept.end));
  EXPECT_EQ(database().transaction_log().end(), kept.end);
  const auto next = append("s", 1);
  ASSERT_TRUE(next) << next.error().error.message;
  EXPECT_EQ(next->first.value(), 2);
  commit();
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1, 2));
}

TEST_F(Truncate, KeepsTheWritesInFlightBelow) {
  builder.write("s", 1);
  const auto kept = append("s", 0);
  ASSERT_TRUE(kept && append("s", 1));
  ASSERT_TRUE(database().truncate(kept->end));
  EXPECT_EQ(code(append("s", 0)), Errc::kConflict);
  commit();
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1));
}

TEST_F(Truncate, RefusesToCutWhatIsCommitted) {
  const auto first = builder.write("s");
  builder.write("s");
  const auto refused = database().truncate(first.end);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1));
}

TEST_F(Truncate, CutsCommittedRecordsOnRequest) {
  const auto lost = builder.event();
  const auto first = builder.write("s");
  builder.write("s", {lost});
  ASSERT_TRUE(database().truncate(first.end, /*even_committed=*/true));
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0));
  // Its id is not remembered either.
  const auto again = append("s", kExpectAny, {lost});
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->repeated);
}

TEST_F(Truncate, RebuildsAnIndexThatReachesBeyond) {
  LogPosition cut;
  for (int i = 0; i < 100; ++i) {
    const auto outcome = builder.write(fmt::format("s-{}", i % 3));
    if (i == 49) {
      cut = outcome.end;
    }
  }
  ASSERT_FALSE(database().stream_index().tables().empty());
  ASSERT_TRUE(database().truncate(cut, /*even_committed=*/true));
  EXPECT_EQ(forward("s-0").events.size(), 17U);
  EXPECT_EQ(forward("s-2").events.size(), 16U);
  builder.close();
  builder.open();
  EXPECT_EQ(forward("s-0").events.size(), 17U);
  EXPECT_THAT(numbers(forward("nothing")), IsEmpty());
}

}  // namespace
}  // namespace verger::streams
