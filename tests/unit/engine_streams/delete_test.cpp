#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

using ::testing::ElementsAre;

std::string text(const Event& event) { return std::string(as_text(event.data)); }

class Delete : public StreamsTest {};

TEST_F(Delete, ASoftDeletedStreamReadsAsMissing) {
  builder.write("s", 3);
  builder.soft_delete("s");
  EXPECT_EQ(forward("s").status, StreamStatus::kNoStream);
  EXPECT_EQ(backward("s").status, StreamStatus::kNoStream);
  EXPECT_EQ(database().last_event_number("s")->value(), 2);
}

TEST_F(Delete, ASoftDeleteWritesOnlyTheTruncation) {
  builder.write("s");
  builder.metadata("s", R"({"$maxCount":5,"own":1})");
  builder.soft_delete("s");
  const auto metadata = backward("$$s", kDeletedStream, 1);
  ASSERT_EQ(metadata.events.size(), 1U);
  EXPECT_EQ(text(metadata.events[0]), R"({"$tb":9223372036854775807})");
  EXPECT_EQ(metadata.events[0].type, "$metadata");
  EXPECT_EQ(metadata.events[0].number.value(), 1);
}

TEST_F(Delete, AWriteRecreatesASoftDeletedStreamAndItsNumbersGoOn) {
  builder.write("s", 3);
  builder.soft_delete("s");
  const auto again = builder.write("s", 2);
  EXPECT_EQ(again.first.value(), 3);
  EXPECT_THAT(numbers(forward("s")), ElementsAre(3, 4));
  EXPECT_EQ(text(backward("$$s").events.at(0)), R"({"$tb":3})");
  // The write counts as committed only together with the metadata that makes it visible.
  EXPECT_EQ(again.end, database().transaction_log().end());
}

TEST_F(Delete, NoStreamIsRightForASoftDeletedStream) {
  builder.write("s", 3);
  builder.soft_delete("s");
  const auto again = append("s", kExpectNoStream);
  ASSERT_TRUE(again) << again.error().error.message;
  EXPECT_EQ(again->first.value(), 3);
  commit();
  EXPECT_THAT(numbers(forward("s")), ElementsAre(3));
}

TEST_F(Delete, StreamExistsIsWrongForASoftDeletedStream) {
  builder.write("s");
  builder.soft_delete("s");
  EXPECT_EQ(code(append("s", kExpectStreamExists)), Errc::kDeleted);
}

TEST_F(Delete, ASoftDeleteInFlightIsSeenByTheNextWrite) {
  builder.write("s", 2);
  ASSERT_TRUE(database().soft_delete("s", kExpectAny));
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0, 1));
  ASSERT_TRUE(append("s", kExpectNoStream));
  commit();
  EXPECT_THAT(numbers(forward("s")), ElementsAre(2));
}

TEST_F(Delete, MetadataOfASoftDeletedStreamIsKeptWithItsTruncation) {
  builder.write("s", 2);
  builder.soft_delete("s");
  builder.metadata("s", R"({"$maxCount":7,"own":"käse"})");
  const auto metadata = backward("$$s", kDeletedStream, 1);
  EXPECT_EQ(text(metadata.events.at(0)), R"({"$maxCount":7,"own":"käse","$tb":2})");
  EXPECT_EQ(metadata.events.at(0).number.value(), 2);
  EXPECT_EQ(forward("s").status, StreamStatus::kSuccess);
  EXPECT_TRUE(forward("s").events.empty());
}

TEST_F(Delete, DeletingSoftlyTwiceWorks) {
  builder.write("s");
  builder.soft_delete("s");
  EXPECT_TRUE(database().soft_delete("s", kExpectAny));
}

TEST_F(Delete, AStreamThatNeverWasCannotBeSoftDeleted) {
  const auto refused = database().soft_delete("s", kExpectAny);
  ASSERT_FALSE(refused);
  EXPECT_EQ(code(refused), Errc::kConflict);
  EXPECT_EQ(refused.error().current_version, kNoStream);
}

TEST_F(Delete, ADeleteHonoursTheExpectedVersion) {
  builder.write("s", 2);
  EXPECT_EQ(code(database().soft_delete("s", 0)), Errc::kConflict);
  EXPECT_EQ(code(database().hard_delete("s", 0)), Errc::kConflict);
  EXPECT_TRUE(database().hard_delete("s", 1));
}

TEST_F(Delete, AHardDeletedStreamIsGoneForEver) {
  builder.write("s", 2);
  const auto outcome = builder.hard_delete("s");
  EXPECT_EQ(outcome.first, kDeletedStream);
  EXPECT_EQ(forward("s").status, StreamStatus::kDeleted);
  EXPECT_EQ(backward("s").status, StreamStatus::kDeleted);
  EXPECT_EQ(forward("$$s").status, StreamStatus::kDeleted);
  EXPECT_EQ(*database().last_event_number("s"), kDeletedStream);
  for (const auto expected : {kExpectAny, kExpectNoStream, kExpectStreamExists}) {
    EXPECT_EQ(code(append("s", expected)), Errc::kDeleted);
    EXPECT_EQ(code(database().soft_delete("s", expected)), Errc::kDeleted);
    EXPECT_EQ(code(database().hard_delete("s", expected)), Errc::kDeleted);
  }
  EXPECT_EQ(code(database().set_metadata("s", kExpectAny, builder.event())), Errc::kDeleted);
}

TEST_F(Delete, MetadataOfAHardDeletedStreamIsTakenWhileTheWriterRemembersSome) {
  const auto metadata = [&] {
    const auto outcome = database().set_metadata("s", kExpectAny, builder.event());
    commit();
    return outcome ? outcome->first.value() : -1;
  };
  builder.write("s", 2);
  builder.metadata("s", "{}");
  builder.hard_delete("s");
  EXPECT_EQ(metadata(), 1);
  EXPECT_EQ(metadata(), 2);
  EXPECT_EQ(code(database().set_metadata("s", 0, builder.event())), Errc::kConflict);
  EXPECT_EQ(code(append("s", kExpectAny)), Errc::kDeleted);
  EXPECT_EQ(forward("$$s").status, StreamStatus::kDeleted) << "it reads as deleted";
  EXPECT_EQ(forward("s").status, StreamStatus::kDeleted);
  database().begin_term();
  EXPECT_EQ(code(database().set_metadata("s", kExpectAny, builder.event())), Errc::kDeleted);
}

TEST_F(Delete, TheWriterRemembersTheStreamsItWroteLast) {
  const auto metadata = [&] { return database().set_metadata("s", kExpectAny, builder.event()); };
  builder.metadata("s", "{}");
  builder.hard_delete("s");
  ASSERT_TRUE(metadata());
  for (int i = 0; i < 1'999; ++i) {
    ASSERT_TRUE(append("other-" + std::to_string(i), kExpectAny));
  }
  ASSERT_TRUE(metadata()) << "it is the newest again";
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(append("other-" + std::to_string(i), kExpectAny));
  }
  commit();  // what is in flight is never forgotten
  EXPECT_EQ(code(metadata()), Errc::kDeleted);
}

TEST_F(Delete, AHardDeleteInFlightIsSeenByTheNextWrite) {
  builder.write("s");
  ASSERT_TRUE(database().hard_delete("s", kExpectAny));
  EXPECT_EQ(code(append("s", kExpectAny)), Errc::kDeleted);
  EXPECT_EQ(code(database().set_metadata("s", kExpectAny, builder.event())), Errc::kDeleted);
  EXPECT_THAT(numbers(forward("s")), ElementsAre(0));
}

TEST_F(Delete, ATombstoneLooksLikeTheServers) {
  builder.write("s");
  const auto outcome = builder.hard_delete("s");
  Bytes buffer;
  const auto record = database().transaction_log().read(outcome.position, buffer);
  ASSERT_TRUE(record);
  const auto* tombstone = record->prepare();
  ASSERT_NE(tombstone, nullptr);
  EXPECT_EQ(tombstone->flags, 0x2E);
  EXPECT_EQ(tombstone->type, "$streamDeleted");
  EXPECT_EQ(tombstone->event_number(), kDeletedStream);
  EXPECT_TRUE(tombstone->data.empty());
  EXPECT_TRUE(tombstone->metadata.empty());
}

TEST_F(Delete, MetastreamsAreNotDeletedByThemselves) {
  builder.metadata("s", "{}");
  EXPECT_EQ(code(database().soft_delete("$$s", kExpectAny)), Errc::kInvalidArgument);
  EXPECT_EQ(code(database().hard_delete("$$s", kExpectAny)), Errc::kInvalidArgument);
  EXPECT_EQ(code(database().set_metadata("$$s", kExpectAny, builder.event())),
            Errc::kInvalidArgument);
}

}  // namespace
}  // namespace verger::streams
