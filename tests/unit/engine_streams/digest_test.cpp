#include "engine/streams/detail/scavenge_point_json.h"
#include "engine/streams/latest_scavenge_point.h"
#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

DatabaseDigest digest_of(const Database& database, LogPosition end, Ticks now,
                         std::uint32_t units = 4096) {
  DigestJob job(database, end, now);
  for (;;) {
    const auto step = job.step(Budget{units});
    if (!step) {
      ADD_FAILURE() << step.error().message;
      return {};
    }
    if (step->kind == StepOutcome::Kind::kDone) {
      return job.digest();
    }
  }
}

/// With next to no memory, so that nearly each event goes through the temporary file.
DatabaseDigest spilled_digest_of(const Database& database, FileSystem& files, LogPosition end,
                                 Ticks now) {
  DigestOptions options;
  options.memory_bytes = 100;
  options.files = &files;
  options.temporary_directory = "/tmp";
  options.keep_free = 0;
  options.hash_in_background = true;
  DigestJob job(database, end, now, options);
  for (;;) {
    const auto step = job.step(Budget{7});
    if (!step) {
      ADD_FAILURE() << step.error().message;
      return {};
    }
    if (step->kind == StepOutcome::Kind::kDone) {
      EXPECT_GT(job.bytes_on_disk(), 0U);
      EXPECT_EQ(job.position(), end);
      return job.digest();
    }
  }
}

class Digest : public StreamsTest {
 protected:
  DatabaseDigest digest() {
    return digest_of(database(), database().committed(), builder.clock().now());
  }
};

TEST_F(Digest, OfALogIsComputedByTheDocumentedRule) {
  builder.write("s", 2);
  const auto end = database().committed();
  Sha256 chunk;
  std::uint64_t records = 0;
  log::LogCursor cursor(database().transaction_log(), LogPosition(0), end);
  for (auto record = cursor.next(); record && *record; record = cursor.next()) {
    const auto payload = (*record)->framed.subspan(4, (*record)->framed.size() - 8);
    Bytes head;
    append_le(head, (*record)->position().value());
    append_le(head, static_cast<std::uint32_t>(payload.size()));
    chunk.update(head);
    chunk.update(payload);
    ++records;
  }
  const auto of_chunk = chunk.finish();
  const auto digest = this->digest();
  ASSERT_EQ(digest.chunks.size(), 1U);
  EXPECT_EQ(digest.chunks[0], of_chunk);
  EXPECT_EQ(digest.logical, sha256(of_chunk));
  EXPECT_EQ(digest.records, records);
  EXPECT_EQ(digest.readable_events, 2U);
}

TEST_F(Digest, OfAnEmptyLogHasNoChunks) {
  const auto digest = digest_of(database(), LogPosition(0), builder.clock().now());
  EXPECT_TRUE(digest.chunks.empty());
  EXPECT_EQ(digest.logical, sha256({}));
  EXPECT_EQ(digest.readable, Sha256Digest{});
}

TEST_F(Digest, DoesNotDependOnTheSizeOfSteps) {
  for (int i = 0; i < 50; ++i) {
    builder.write(fmt::format("s-{}", i % 4), 2, 200);
  }
  const auto end = database().committed();
  const auto whole = digest_of(database(), end, builder.clock().now());
  const auto stepped = digest_of(database(), end, builder.clock().now(), 1);
  EXPECT_GT(whole.chunks.size(), 1U);
  EXPECT_EQ(whole.chunks, stepped.chunks);
  EXPECT_EQ(whole.logical, stepped.logical);
  EXPECT_EQ(whole.readable, stepped.readable);
}

TEST_F(Digest, IgnoresWhatComesAfterItsEnd) {
  builder.write("s", 5);
  builder.write("gone", 2);
  const auto point = builder.point();
  const auto before = digest_of(database(), point.position, point.effective_now);
  builder.write("s", 5);
  builder.metadata("s", R"({"$maxCount":1})");
  builder.hard_delete("gone");
  const auto after = digest_of(database(), point.position, point.effective_now);
  EXPECT_EQ(before.logical, after.logical);
  EXPECT_EQ(before.readable, after.readable);
  EXPECT_EQ(after.readable_events, 7U);
}

/// For readers a log where something is hidden and one where it never was are the same.
TEST_F(Digest, CountsWhatReadersSee) {
  builder.write("s", 6);
  builder.write("deleted", 2);
  builder.write("soft", 2);
  builder.transaction("t", 2);
  EXPECT_EQ(digest().readable_events, 12U);
  builder.metadata("s", R"({"$maxCount":2})");
  EXPECT_EQ(digest().readable_events, 9U);  // four go, one metadata event comes
  builder.hard_delete("deleted");
  EXPECT_EQ(digest().readable_events, 7U);
  builder.soft_delete("soft");
  EXPECT_EQ(digest().readable_events, 6U);
  builder.metadata("t", R"({"$maxAge":10})");
  EXPECT_EQ(digest().readable_events, 7U);
  builder.clock().advance_seconds(20);
  EXPECT_EQ(digest().readable_events, 5U);
}

TEST_F(Digest, IsTheSameThroughATemporaryFileOfWhichNothingIsLeft) {
  for (int i = 0; i < 60; ++i) {
    builder.write(fmt::format("s-{}", i % 7), 1 + i % 3, 50);
  }
  builder.metadata("s-1", R"({"$maxCount":2})");
  builder.metadata("s-2", R"({"$tb":5})");
  builder.metadata("s-2", R"({"$tb":3})");
  builder.hard_delete("s-3");
  builder.soft_delete("s-4");
  builder.metadata("s-6", R"({"$maxAge":3600})");
  builder.clock().advance_seconds(1800);
  builder.write("s-6", 2);
  builder.clock().advance_seconds(1801);
  const auto end = database().committed();
  const auto now = builder.clock().now();
  const auto whole = digest_of(database(), end, now);
  ASSERT_TRUE(disk.make_directories("/tmp"));
  const auto spilled = spilled_digest_of(database(), disk, end, now);
  EXPECT_GT(whole.readable_events, 40U);
  EXPECT_EQ(whole.readable, spilled.readable);
  EXPECT_EQ(whole.readable_events, spilled.readable_events);
  EXPECT_EQ(whole.logical, spilled.logical);
  EXPECT_TRUE(disk.list("/tmp").value().empty());
}

TEST_F(Digest, StopsBeforeTheDiskOfItsTemporaryFileIsFull) {
  builder.write("s", 50);
  ASSERT_TRUE(disk.make_directories("/tmp"));
  disk.set_free_space(1'000'000);
  DigestOptions options;
  options.memory_bytes = 100;
  options.files = &disk;
  options.temporary_directory = "/tmp";
  options.keep_free = 2'000'000;
  for (const bool in_background : {false, true}) {
    SCOPED_TRACE(in_background);
    options.hash_in_background = in_background;
    DigestJob job(database(), database().committed(), builder.clock().now(), options);
    Result<StepOutcome> step = StepOutcome{};
    while (step && step->kind != StepOutcome::Kind::kDone) {
      step = job.step(Budget{});
    }
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, Errc::kNoSpace);
    EXPECT_NE(step.error().message.find("/tmp"), std::string::npos) << step.error().message;
  }
}

TEST_F(Digest, OfTheRecordsAloneNeedsNoMemoryForStreams) {
  builder.write("s", 50);
  DigestOptions options;
  options.readable = false;
  options.memory_bytes = 0;
  options.files = &disk;
  options.temporary_directory = "/nowhere";
  const auto end = database().committed();
  DigestJob job(database(), end, builder.clock().now(), options);
  for (auto step = job.step(Budget{}); step->kind != StepOutcome::Kind::kDone;) {
    step = job.step(Budget{});
    ASSERT_TRUE(step);
  }
  EXPECT_EQ(job.digest().logical, digest_of(database(), end, builder.clock().now()).logical);
  EXPECT_EQ(job.digest().readable_events, 0U);
}

/// Stopping it waits for the step that is under way.
TEST_F(Digest, AStepReadsAFewMegabytesHoweverLargeTheRecordsAre) {
  for (int i = 0; i < 700; ++i) {
    builder.write("s", 1, 10'000);
  }
  DigestJob job(database(), database().committed(), builder.clock().now());
  ASSERT_GT(job.end().value(), 7'000'000);
  int steps = 0;
  for (auto step = job.step(Budget{1'000'000}); job.position() < job.end();
       step = job.step(Budget{1'000'000})) {
    ASSERT_TRUE(step);
    ++steps;
  }
  EXPECT_GE(steps, 1) << "7 MB of records are not read at one go";
}

TEST_F(Digest, ReadableChangesWithEveryPartOfAnEvent) {
  std::vector<Sha256Digest> seen;
  for (int part = 0; part < 5; ++part) {
    MemoryFileSystem other_disk;
    test::DatabaseBuilder other(other_disk, "/db");
    auto event = other.event();
    switch (part) {
      case 1:
        event.data.push_back(std::byte{1});
        break;
      case 2:
        event.metadata.push_back(std::byte{1});
        break;
      case 3:
        event.type = "other";
        break;
      case 4:
        event.id = other.random().uuid();
        break;
      default:
        break;
    }
    other.write("s", {event});
    seen.push_back(
        digest_of(other.database(), other.database().committed(), test::kTestTime).readable);
  }
  std::ranges::sort(seen);
  EXPECT_TRUE(std::ranges::adjacent_find(seen) == seen.end());
}

class Points : public StreamsTest {};

TEST_F(Points, AreListedOldestFirst) {
  EXPECT_TRUE(scavenge_points(database())->empty());
  builder.write("s", 3);
  const auto first = builder.point();
  const auto second = builder.point(-5);
  const auto points = scavenge_points(database());
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_THAT(*points, ::testing::ElementsAre(first, second));
  EXPECT_EQ(first.number.value(), 0);
  EXPECT_EQ(second.threshold, -5);
}

TEST_F(Points, EndTheirChunk) {
  builder.write("s");
  const auto point = builder.point(3);
  const auto next = builder.write("s");
  const auto& log = database().transaction_log();
  EXPECT_EQ(log.chunk_of(point.position).value(), 0);
  EXPECT_EQ(next.position.value(), log.chunk_size());
  EXPECT_TRUE(log.chunk_at(point.position)->completed());
}

TEST_F(Points, HaveTheServersPayload) {
  builder.point();
  builder.point(42);
  const auto slice = forward("$scavengePoints");
  ASSERT_EQ(slice.events.size(), 2U);
  EXPECT_EQ(as_text(slice.events[0].data), "{}");
  EXPECT_EQ(as_text(slice.events[1].data), "{\n  \"threshold\": 42\n}");
  EXPECT_EQ(slice.events[0].type, "$scavengePoint");
}

TEST_F(Points, OnlyALastEventThatIsNoneStandsInTheWay) {
  EXPECT_EQ(latest_scavenge_point(database()).value(), std::nullopt);
  builder.write("$scavengePoints");
  EXPECT_EQ(latest_scavenge_point(database()).error().code, Errc::kUnsupported);
  EXPECT_TRUE(scavenge_points(database())->empty());
  const auto point = builder.point(7);
  EXPECT_EQ(latest_scavenge_point(database()).value(), point);
  EXPECT_THAT(*scavenge_points(database()), ::testing::ElementsAre(point));
  builder.write("$scavengePoints");
  const auto latest = latest_scavenge_point(database());
  ASSERT_FALSE(latest);
  EXPECT_EQ(latest.error().code, Errc::kUnsupported);
  EXPECT_THAT(latest.error().message, ::testing::HasSubstr("number 2 at log position"));
  EXPECT_THAT(*scavenge_points(database()), ::testing::ElementsAre(point));
}

TEST_F(Points, AreNotThereWhenReadersDoNotSeeThem) {
  builder.point();
  builder.metadata("$scavengePoints", R"({"$tb":1})");
  EXPECT_EQ(latest_scavenge_point(database()).value(), std::nullopt);
  builder.soft_delete("$scavengePoints");
  EXPECT_EQ(latest_scavenge_point(database()).value(), std::nullopt);
}

TEST_F(Points, OfADeletedStreamAreAnError) {
  builder.point();
  builder.hard_delete("$scavengePoints");
  const auto latest = latest_scavenge_point(database());
  ASSERT_FALSE(latest);
  EXPECT_EQ(latest.error().code, Errc::kDeleted);
  EXPECT_THAT(latest.error().message, ::testing::HasSubstr("$scavengePoints is deleted for good"));
}

TEST(PointPayload, IsReadAsLeniently) {
  using detail::parse_point_threshold;
  const std::vector<std::pair<std::string_view, std::int32_t>> accepted = {
      {"{}", 0},
      {R"({"threshold":5})", 5},
      {R"({"threshold":-1})", -1},
      {R"({"Threshold":5})", 5},
      {R"({"THRESHOLD":5})", 5},
      {R"({"threshold":"5"})", 5},
      {R"({"threshold":" +5 "})", 5},
      {R"({"threshold":""})", 0},
      {R"({"threshold":null})", 0},
      {R"({"threshold":5,"threshold":null})", 5},
      {R"({"threshold":5,"Threshold":0})", 5},
      {R"({"threshold":5,"threshold":6})", 6},
      {"{'threshold':5}", 5},
      {"{threshold:0x10}", 16},
      {R"({"threshold":5,})", 5},
      {R"( /*a*/ {/*b*/"threshold":/*c*/5/*d*/} // e)", 5},
      {R"({"other":[1,{"threshold":9}],"threshold":5})", 5},
      {R"({"threshold":2147483647})", 2147483647}};
  for (const auto& [text, threshold] : accepted) {
    EXPECT_EQ(parse_point_threshold(as_bytes(text)), threshold) << text;
  }
  for (const std::string_view text :
       {"", "null", "[]", "5", "\"\"", "{", "{}}", "{} x", "\xEF\xBB\xBF{}", R"({"threshold":5.0})",
        R"({"threshold":true})", R"({"threshold":{}})", R"({"threshold":"x"})",
        R"({"threshold":"5.0"})", R"({"threshold":2147483648})", R"({"threshold":})",
        R"({"threshold":,})", R"({"threshold":5)"}) {
    EXPECT_EQ(parse_point_threshold(as_bytes(text)), std::nullopt) << text;
  }
}

TEST_F(Points, AreAppendedWithAnExpectedVersion) {
  ASSERT_TRUE(database().append_scavenge_point(kExpectNoStream, 0));
  EXPECT_EQ(code(database().append_scavenge_point(kExpectNoStream, 0)), Errc::kConflict);
  EXPECT_TRUE(database().append_scavenge_point(0, 0));
}

}  // namespace
}  // namespace verger::streams
