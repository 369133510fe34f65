#include "engine/streams/stream_names.h"
#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Append : public StreamsTest {};

TEST_F(Append, NumbersEventsFromZero) {
  const auto outcome = append("s", kExpectNoStream, 3);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->first.value(), 0);
  EXPECT_EQ(outcome->last.value(), 2);
  EXPECT_FALSE(outcome->repeated);
  EXPECT_EQ(outcome->end, database().transaction_log().end());
}

TEST_F(Append, ReturnsWhatWasWritten) {
  auto event = builder.event();
  event.type = "größe";
  event.metadata = Bytes(5, std::byte{7});
  builder.write("s", {event});
  const auto slice = forward("s");
  ASSERT_EQ(slice.events.size(), 1U);
  EXPECT_EQ(slice.events[0].id, event.id);
  EXPECT_EQ(slice.events[0].type, event.type);
  EXPECT_EQ(slice.events[0].data, event.data);
  EXPECT_EQ(slice.events[0].metadata, event.metadata);
  EXPECT_EQ(slice.events[0].timestamp, test::kTestTime);
  EXPECT_TRUE(slice.events[0].is_json);
}

TEST_F(Append, AcceptsTheCurrentVersion) {
  builder.write("s", 2);
  const auto outcome = append("s", 1);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->first.value(), 2);
}

TEST_F(Append, RefusesAnotherVersionAndNamesTheCurrentOne) {
  builder.write("s", 3);
  for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{7}, kExpectNoStream}) {
    const auto refused = append("s", wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(code(refused), Errc::kConflict);
    EXPECT_EQ(refused.error().current_version.value(), 2);
  }
  EXPECT_EQ(forward("s").events.size(), 3U);
}

TEST_F(Append, AMissingStreamHasVersionMinusOne) {
  const auto refused = append("s", 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().current_version, kNoStream);
}

TEST_F(Append, StreamExistsNeedsEventsOrMetadata) {
  EXPECT_EQ(code(append("s", kExpectStreamExists)), Errc::kConflict);
  builder.metadata("s", "{}");
  EXPECT_TRUE(append("s", kExpectStreamExists));
  builder.write("t");
  EXPECT_TRUE(append("t", kExpectStreamExists));
}

TEST_F(Append, ExpectedVersionsSeeWritesInFlight) {
  ASSERT_TRUE(append("s", kExpectNoStream, 2));
  EXPECT_EQ(code(append("s", kExpectNoStream)), Errc::kConflict);
  const auto next = append("s", 1);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->first.value(), 2);
  EXPECT_THAT(forward("s").events, IsEmpty());
}

TEST_F(Append, ARepeatedWriteAnswersWithTheFirstOutcome) {
  const std::vector events{builder.event(), builder.event()};
  const auto first = append("s", kExpectNoStream, events);
  ASSERT_TRUE(first);
  for (const auto expected : {kExpectNoStream, kExpectAny, kExpectStreamExists}) {
    const auto again = append("s", expected, events);
    ASSERT_TRUE(again) << again.error().error.message;
    EXPECT_TRUE(again->repeated);
    EXPECT_EQ(again->first, first->first);
    EXPECT_EQ(again->last, first->last);
    EXPECT_EQ(again->position, first->position);
    EXPECT_EQ(again->end, first->end);
  }
  commit();
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1));
}

TEST_F(Append, ARepeatedWriteIsKnownAfterReopening) {
  const std::vector events{builder.event(), builder.event()};
  const auto first = builder.write("s", events);
  builder.write("s");
  builder.close();
  builder.open();
  for (const auto expected : {kExpectNoStream, kExpectAny}) {
    const auto again = append("s", expected, events);
    ASSERT_TRUE(again) << again.error().error.message;
    EXPECT_TRUE(again->repeated);
    EXPECT_EQ(again->first, first.first);
    EXPECT_EQ(again->position, first.position);
    EXPECT_EQ(again->end, first.end);
  }
}

TEST_F(Append, AWriteThatRepeatsOnlyInPartIsRefused) {
  const auto known = builder.event();
  builder.write("s", {known});
  EXPECT_EQ(code(append("s", kExpectAny, {known, builder.event()})), Errc::kConflict);
  builder.write("s");
  EXPECT_EQ(code(append("s", kExpectNoStream, {known, builder.event()})), Errc::kConflict);
}

TEST_F(Append, TheSameIdInAnotherStreamIsAnotherEvent) {
  const auto event = builder.event();
  builder.write("s", {event});
  const auto other = append("t", kExpectAny, {event});
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->repeated);
}

TEST_F(Append, AnEmptyWriteTakesNoNumber) {
  builder.write("s");
  builder.write("s", 0);
  builder.write("s");
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1));
}

TEST_F(Append, RefusesWhatNoRecordMayHold) {
  EXPECT_EQ(code(append("", kExpectAny)), Errc::kInvalidArgument);
  EXPECT_EQ(code(append("$$", kExpectAny)), Errc::kInvalidArgument);
  EXPECT_EQ(code(append("\xC3\x28", kExpectAny)), Errc::kInvalidArgument);
  auto event = builder.event();
  event.id = Uuid{};
  EXPECT_EQ(code(append("s", kExpectAny, {event})), Errc::kInvalidArgument);
  event = builder.event();
  event.data.resize(17U << 20U);
  EXPECT_EQ(code(append("s", kExpectAny, {event})), Errc::kInvalidArgument);
  EXPECT_TRUE(append("s", kExpectNoStream));
}

TEST_F(Append, FillsSeveralChunksAndTables) {
  for (int i = 0; i < 200; ++i) {
    builder.write(fmt::format("s-{}", i % 7), 2, 100);
  }
  EXPECT_GT(database().transaction_log().chunks().size(), 3U);
  EXPECT_FALSE(database().stream_index().tables().empty());
  builder.close();
  builder.open();
  for (int s = 0; s < 7; ++s) {
    const auto slice = forward(fmt::format("s-{}", s));
    EXPECT_EQ(slice.events.size(), slice.events.back().number.value() + 1U);
    EXPECT_GE(slice.events.size(), 56U);
  }
}

TEST_F(Append, AScavengePointEndsItsChunk) {
  builder.write("s", 3);
  const auto& log = database().transaction_log();
  const auto chunk = log.chunk_at(LogPosition(0));
  ASSERT_LT(log.end(), chunk->end_position());
  builder.point(0);
  EXPECT_TRUE(log.chunk_at(LogPosition(0))->completed());
  EXPECT_EQ(log.append_position(), chunk->end_position());
  // Only a point does, alone in its stream.
  auto event = builder.event();
  event.type = kScavengePointType;
  builder.write("other", {event});
  EXPECT_FALSE(log.chunks().back()->completed());
}

TEST_F(Append, TheSameCallsGiveTheSameBytes) {
  MemoryFileSystem other_disk;
  test::DatabaseBuilder other(other_disk, "/db");
  for (auto* one : {&builder, &other}) {
    one->write("s", 3);
    one->metadata("s", R"({"$maxCount":2})");
    one->point(5);
    one->close();
  }
  const auto chunk = Path("/db/chunk-000000.000000");
  const auto ours = read_file(disk, chunk);
  const auto others = read_file(other_disk, chunk);
  ASSERT_TRUE(ours && others);
  EXPECT_EQ(*ours, *others);
}

TEST_F(Append, AReadOnlyDatabaseRefuses) {
  builder.write("s");
  builder.close();
  auto opened =
      Database::open(disk, "/db", test::database_options(builder.options(), log::Access::kReadOnly),
                     true, builder.clock(), builder.random(), null_log());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(code((*opened)->append("s", kExpectAny, {builder.event()})), Errc::kRefused);
  EXPECT_EQ(code((*opened)->soft_delete("s", kExpectAny)), Errc::kRefused);
  EXPECT_EQ((*opened)->truncate(LogPosition(0)).error().code, Errc::kRefused);
  EXPECT_EQ((*opened)->read_forward("s", EventNumber(0), 10)->events.size(), 1U);
}

}  // namespace
}  // namespace verger::streams
