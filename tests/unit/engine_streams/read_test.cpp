#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Read : public StreamsTest {};

TEST_F(Read, PagesForward) {
  builder.write("s", 5);
  const auto first = forward("s", 0, 2);
  EXPECT_THAT(numbers(first), ElementsAre(0, 1));
  EXPECT_EQ(first.next.value(), 2);
  EXPECT_FALSE(first.end_of_stream);
  EXPECT_EQ(first.last_event_number.value(), 4);
  const auto last = forward("s", 4, 2);
  EXPECT_THAT(numbers(last), ElementsAre(4));
  EXPECT_TRUE(last.end_of_stream);
  EXPECT_EQ(last.next.value(), 5);
}

TEST_F(Read, PagesBackward) {
  builder.write("s", 5);
  const auto first = backward("s", kDeletedStream, 2);
  EXPECT_THAT(numbers(first), ElementsAre(4, 3));
  EXPECT_EQ(first.next.value(), 2);
  const auto last = backward("s", EventNumber(2), 3);
  EXPECT_THAT(numbers(last), ElementsAre(2, 1, 0));
  EXPECT_TRUE(last.end_of_stream);
  EXPECT_EQ(last.next.value(), -1);
}

TEST_F(Read, AMissingStreamHasNoEvents) {
  const auto slice = forward("nothing");
  EXPECT_EQ(slice.status, StreamStatus::kNoStream);
  EXPECT_EQ(slice.last_event_number, kNoStream);
  EXPECT_TRUE(slice.end_of_stream);
}

TEST_F(Read, PastTheEndIsEmptyAndTheEnd) {
  builder.write("s", 2);
  const auto slice = forward("s", 9);
  EXPECT_THAT(slice.events, IsEmpty());
  EXPECT_TRUE(slice.end_of_stream);
  EXPECT_EQ(slice.next.value(), 2);
}

TEST_F(Read, RefusesAPageOfNothing) {
  EXPECT_EQ(database().read_forward("s", EventNumber(0), 0).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(database().read_forward("s", EventNumber(-1), 1).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(database().read_backward("s", EventNumber(-1), 1).error().code, Errc::kInvalidArgument);
}

TEST_F(Read, TheLargestNumbersDoNotOverflow) {
  builder.write("s", 2);
  const auto most = std::numeric_limits<std::size_t>::max();
  EXPECT_THAT(numbers(forward("s", 1, most)), ElementsAre(1));
  EXPECT_THAT(numbers(forward("s", std::numeric_limits<std::int64_t>::max(), most)), IsEmpty());
  EXPECT_THAT(numbers(backward("s", kDeletedStream, most)), ElementsAre(1, 0));
}

TEST_F(Read, MaxCountKeepsTheLast) {
  builder.write("s", 6);
  builder.metadata("s", R"({"$maxCount":2})");
  EXPECT_THAT(numbers(forward("s")), ElementsAre(4, 5));
  EXPECT_THAT(numbers(backward("s")), ElementsAre(5, 4));
  const auto early = forward("s", 0, 2);
  EXPECT_THAT(early.events, IsEmpty());
  EXPECT_FALSE(early.end_of_stream);
  EXPECT_EQ(early.next.value(), 4);
}

TEST_F(Read, TruncateBeforeHidesWhatIsBelow) {
  builder.write("s", 4);
  builder.metadata("s", R"({"$tb":3,"$maxCount":3})");
  EXPECT_THAT(numbers(forward("s")), ElementsAre(3));
  const auto below = backward("s", EventNumber(2));
  EXPECT_THAT(below.events, IsEmpty());
  EXPECT_TRUE(below.end_of_stream);
}

TEST_F(Read, TruncateBeforeBeyondTheLastLeavesAnEmptyStream) {
  builder.write("s", 4);
  builder.metadata("s", R"({"$tb":100})");
  EXPECT_EQ(forward("s").status, StreamStatus::kSuccess);
  EXPECT_THAT(forward("s").events, IsEmpty());
}

TEST_F(Read, MaxAgeGoesByTheClock) {
  builder.write("s", 1);
  builder.clock().advance_seconds(9);
  builder.write("s", 1);
  builder.metadata("s", R"({"$maxAge":10})");
  const auto second = forward("s").events.back().timestamp;
  builder.clock().set(Ticks(second.value() + 10 * kTicksPerSecond));
  EXPECT_THAT(numbers(forward("s")), ElementsAre(1));
  EXPECT_THAT(numbers(backward("s")), ElementsAre(1));
  builder.clock().set(Ticks(builder.clock().now().value() + 1));
  EXPECT_THAT(numbers(forward("s")), IsEmpty());
}

TEST_F(Read, AHugeMaxAgeHidesNothing) {
  builder.write("s", 1);
  builder.metadata("s", R"({"$maxAge":922337203685})");
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0));
}

TEST_F(Read, AMetastreamShowsItsLastEventOnly) {
  builder.metadata("s", R"({"$maxCount":1})");
  builder.metadata("s", R"({"$maxCount":2})");
  EXPECT_THAT(numbers(forward("$$s")), ElementsAre(1));
  EXPECT_EQ(database().metadata("s")->max_count, 2);
  EXPECT_EQ(database().metadata("s")->number.value(), 1);
  EXPECT_EQ(database().metadata("$$s")->max_count, 1);
}

TEST_F(Read, MetadataThatIsNotJsonDoesNotCount) {
  builder.write("s", 3);
  auto event = builder.event();
  event.is_json = false;
  const auto bytes = as_bytes(R"({"$maxCount":1})");
  event.data.assign(bytes.begin(), bytes.end());
  ASSERT_TRUE(database().set_metadata("s", kExpectAny, event));
  commit();
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1, 2));
}

TEST_F(Read, EventsOfACommittedTransactionAreNumbered) {
  builder.write("s", 2);
  builder.transaction("s", 3);
  builder.transaction("s", 2, /*open=*/true);
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1, 2, 3, 4));
}

/// Writes an event with any number, as damaged or odd logs hold them.
void write_numbered(test::DatabaseBuilder& builder, std::string_view stream, std::int64_t number,
                    std::string_view type) {
  auto& log = builder.database().transaction_log();
  log::Prepare prepare;
  prepare.position = kNoPosition;
  prepare.transaction_position = kNoPosition;
  prepare.flags = 0x0127;
  prepare.expected_version = number - 1;
  prepare.stream = stream;
  prepare.event_id = builder.random().uuid();
  prepare.correlation_id = builder.random().uuid();
  prepare.timestamp = builder.clock().now();
  prepare.type = type;
  ASSERT_TRUE(log.append(std::span(&prepare, 1)));
  ASSERT_TRUE(log.flush());
  ASSERT_TRUE(builder.database().commit_up_to(log.end()));
}

TEST_F(Read, OfRepeatedNumbersTheLowestPositionWins) {
  builder.write("s", 2);
  write_numbered(builder, "s", 1, "late");
  const auto ahead = forward("s");
  EXPECT_THAT(numbers(ahead), ElementsAre(0, 1));
  EXPECT_EQ(ahead.events[1].type, "e");
  const auto back = backward("s");
  EXPECT_THAT(numbers(back), ElementsAre(1, 0));
  EXPECT_EQ(back.events[0].type, "e");
}

TEST_F(Read, SkipsGaps) {
  builder.write("s", 2);
  write_numbered(builder, "s", 1000, "far");
  EXPECT_THAT(numbers(forward("s", 0, 2000)), ElementsAre(0, 1, 1000));
  const auto gap = forward("s", 2, 10);
  EXPECT_THAT(gap.events, IsEmpty());
  EXPECT_FALSE(gap.end_of_stream);
  EXPECT_EQ(gap.next.value(), 1000);
  const auto back = backward("s", EventNumber(999), 10);
  EXPECT_THAT(back.events, IsEmpty());
  EXPECT_EQ(back.next.value(), 1);
}

StreamHash one_hash(std::string_view) { return StreamHash(0x1234'5678'9abc'def0); }

class ReadWithCollisions : public StreamsTest {
 protected:
  static test::BuilderOptions colliding() {
    test::BuilderOptions options;
    options.hash = &one_hash;
    return options;
  }
  ReadWithCollisions() : StreamsTest(colliding()) {}
};

TEST_F(ReadWithCollisions, EachStreamSeesItsOwnEvents) {
  for (int i = 0; i < 60; ++i) {
    builder.write(fmt::format("s-{}", i % 3), 1 + i % 2);
  }
  builder.metadata("s-1", R"({"$maxCount":4})");
  builder.soft_delete("s-2");
  for (int i = 0; i < 10; ++i) {
    builder.write("other", 20);
  }
  EXPECT_EQ(forward("s-0").events.size(), 30U);
  EXPECT_EQ(forward("s-0").events.front().stream, "s-0");
  EXPECT_THAT(numbers(forward("s-1")), ElementsAre(26, 27, 28, 29));
  EXPECT_EQ(forward("s-2").status, StreamStatus::kNoStream);
  EXPECT_EQ(forward("s-3").status, StreamStatus::kNoStream);
  EXPECT_EQ(backward("s-0", kDeletedStream, 7).events.size(), 7U);
}

TEST_F(ReadWithCollisions, AHardDeleteTakesOnlyItsStream) {
  builder.write("a", 3);
  builder.write("b", 3);
  builder.hard_delete("a");
  EXPECT_EQ(forward("a").status, StreamStatus::kDeleted);
  EXPECT_THAT(numbers(forward("b")), ElementsAre(0, 1, 2));
  EXPECT_EQ(append("b", 2)->first.value(), 3);
}

}  // namespace
}  // namespace verger::streams
