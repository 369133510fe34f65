// Events are blanked in chunk files of every kind, and nothing else changes.
#include "engine/redaction/redaction_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/sqlite.h"
#include "engine/redaction/record_blanking.h"
#include "engine/scavenge/parallel_runner.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/verify/verify_database_job.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"

namespace verger::redaction {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Path kDirectory = "/db";

std::string secret(int n) {
  return fmt::format(R"({{"name":"Ada Lovelace {}","street":"St James's Square 12"}})", n);
}

class Redaction : public ::testing::Test {
 protected:
  Redaction() : builder(disk, kDirectory, {.chunk_size = 4096}) {}

  streams::NewEvent event(const std::string& data, const std::string& metadata = "") {
    auto made = builder.event();
    const auto as_vector = [](const std::string& text) {
      const auto bytes = as_bytes(text);
      return Bytes(bytes.begin(), bytes.end());
    };
    made.data = as_vector(data);
    made.metadata = as_vector(metadata);
    return made;
  }
  /// Events in "customer-7" among others, in several chunks, the last of them completed.
  void fill(int count = 8) {
    for (int n = 0; n < count; ++n) {
      builder.write("other", 4, 200);
      builder.write("customer-7", {event(secret(n), R"({"by":"clerk-77-of-the-shop"})")});
    }
    builder.point();
    builder.close();
  }
  streams::Event read(std::int64_t number, const std::string& stream = "customer-7") {
    const auto database = value(test::open_to_read(disk, kDirectory));
    return value(database->read_forward(stream, EventNumber(number), 1)).events.at(0);
  }
  std::map<std::string, Bytes> chunk_files() {
    std::map<std::string, Bytes> found;
    for (const auto& entry : value(disk.list(kDirectory))) {
      if (log::parse_chunk_file_name(entry.name)) {
        found[entry.name] = value(read_file(disk, kDirectory / entry.name));
      }
    }
    return found;
  }
  /// What `verger-db verify` says of the database.
  std::vector<std::string> damage() {
    verify::VerifyDatabaseJob job(
        disk, {.directory = kDirectory, .index_directory = {}, .scratch = "/tmp"}, clock, random,
        null_log());
    while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
    }
    std::vector<std::string> lines;
    for (const auto& finding : job.findings().all()) {
      if (finding.damage) {
        lines.push_back(finding.file + ": " + finding.text);
      }
    }
    return lines;
  }
  void write_file(const std::string& name, std::string_view text) {
    ok(write_file_durably(disk, kDirectory / name, as_bytes(text)));
  }

  static RedactionRequest events(std::initializer_list<std::int64_t> numbers) {
    RedactionRequest request;
    for (const auto number : numbers) {
      request.events.push_back({"customer-7", EventNumber(number)});
    }
    return request;
  }

  MemoryFileSystem disk;
  test::DatabaseBuilder builder;
  test::ManualClock clock;
  SeededRandom random{5};
};

TEST_F(Redaction, BlanksDataSetsTheFlagAndChangesNothingElse) {
  fill();
  const auto before = chunk_files();
  const auto original = read(3);
  const auto chunks = value(test::redact(disk, kDirectory, events({3})));
  ASSERT_THAT(chunks, SizeIs(1));
  const auto after = chunk_files();
  ASSERT_EQ(after.size(), before.size());
  EXPECT_FALSE(after.contains(chunks[0].from));
  EXPECT_EQ(log::parse_chunk_file_name(chunks[0].to)->version, 1);
  for (const auto& [name, bytes] : before) {
    if (name != chunks[0].from) {
      EXPECT_EQ(after.at(name), bytes);
    }
  }
  const auto& old = before.at(chunks[0].from);
  const auto& now = after.at(chunks[0].to);
  ASSERT_EQ(old.size(), now.size());
  const auto text = secret(3);
  const auto data = as_text(old).find(text);
  ASSERT_NE(data, std::string_view::npos);
  std::size_t differ = 0;
  std::size_t flags_changed = 0;
  for (std::size_t at = 0; at < old.size(); ++at) {
    if (at >= data && at < data + text.size()) {
      EXPECT_EQ(now[at], std::byte{0xFF});
    } else if (at + 16 >= old.size()) {
      differ += old[at] != now[at] ? 1 : 0;
    } else if (old[at] != now[at]) {
      // The second byte of the flags, before stream name, ids and type.
      EXPECT_LT(at, data);
      EXPECT_EQ(old[at] | std::byte{0x02}, now[at]);
      ++flags_changed;
    }
  }
  EXPECT_EQ(flags_changed, 1U);
  EXPECT_GT(differ, 0U);  // the MD5
  EXPECT_EQ(to_hex(md5(ByteView(now).first(now.size() - 16))), to_hex(chunks[0].md5_after));
  const auto blanked = read(3);
  EXPECT_TRUE(blanked.is_redacted);
  EXPECT_THAT(blanked.data, IsEmpty());
  EXPECT_EQ(blanked.metadata, original.metadata);
  EXPECT_EQ(blanked.id, original.id);
  EXPECT_EQ(blanked.timestamp, original.timestamp);
  EXPECT_THAT(damage(), IsEmpty());
  EXPECT_THAT(test::files_with(disk, kDirectory, text), IsEmpty());
}

TEST_F(Redaction, RewritesEachChunkFileOnceForAllItsEvents) {
  fill(12);
  const auto plan = value(test::plan(disk, kDirectory, events({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})));
  EXPECT_THAT(plan.records, SizeIs(10));
  EXPECT_GT(plan.chunks.size(), 1U);
  EXPECT_LT(plan.chunks.size(), 10U);
  const auto chunks =
      value(test::redact(disk, kDirectory, events({9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8})));
  EXPECT_EQ(chunks.size(), plan.chunks.size());
  for (int n = 0; n < 12; ++n) {
    EXPECT_EQ(read(n).is_redacted, n < 10);
    EXPECT_EQ(test::files_with(disk, kDirectory, secret(n)).empty(), n < 10);
  }
  EXPECT_THAT(damage(), IsEmpty());
}

TEST_F(Redaction, OfARedactedEventIsNothing) {
  fill();
  value(test::redact(disk, kDirectory, events({2})));
  const auto before = chunk_files();
  const auto plan = value(test::plan(disk, kDirectory, events({2})));
  EXPECT_EQ(plan.to_do(), 0U);
  EXPECT_TRUE(plan.records.at(0).already);
  EXPECT_THAT(value(test::redact(disk, kDirectory, events({2}))), IsEmpty());
  EXPECT_EQ(chunk_files(), before);
}

TEST_F(Redaction, CompletesWhatOnlySetTheFlag) {
  fill();
  // As a tool would that was interrupted between flag and data, or knows only the flag.
  const auto planned = value(test::plan(disk, kDirectory, events({2}))).records.at(0);
  Bytes bytes = value(read_file(disk, kDirectory / planned.chunk_file));
  {
    const auto database = value(test::open_to_read(disk, kDirectory));
    Bytes buffer;
    const auto record = value(database->transaction_log().read(planned.position, buffer));
    const auto flags = patches_of(record, false).at(0);
    store_le(bytes.data() + flags.offset, flags.flags);
  }
  const auto sum = md5(ByteView(bytes).first(bytes.size() - 16));
  std::ranges::copy(sum, bytes.end() - 16);
  ok(disk.set_read_only(kDirectory / planned.chunk_file, false));
  ok(write_file_durably(disk, kDirectory / planned.chunk_file, bytes));
  EXPECT_TRUE(read(2).is_redacted);
  EXPECT_THAT(value(test::redact(disk, kDirectory, events({2}))), SizeIs(1));
  EXPECT_THAT(test::files_with(disk, kDirectory, secret(2)), IsEmpty());
}

TEST_F(Redaction, BlanksMetadataOnlyOnRequest) {
  fill();
  auto request = events({1});
  value(test::redact(disk, kDirectory, request));
  EXPECT_EQ(as_text(read(1).metadata), R"({"by":"clerk-77-of-the-shop"})");
  request.metadata = true;
  EXPECT_THAT(value(test::redact(disk, kDirectory, request)), SizeIs(1));
  EXPECT_EQ(read(1).metadata, Bytes(29, std::byte{0xFF}));
  EXPECT_EQ(as_text(read(2).metadata), R"({"by":"clerk-77-of-the-shop"})");
  EXPECT_THAT(damage(), IsEmpty());
}

TEST_F(Redaction, FindsAnEventByItsPositionAndByTheNumberOfItsTransaction) {
  builder.write("customer-7", {event(secret(0))});
  builder.transaction("customer-7", 2);
  builder.transaction("open", 1, /*open=*/true);
  builder.point();
  builder.close();
  auto plan = value(test::plan(disk, kDirectory, events({0, 1, 2})));
  ASSERT_THAT(plan.records, SizeIs(3));
  RedactionRequest by_position;
  for (const auto& record : plan.records) {
    by_position.positions.push_back(record.position);
  }
  plan = value(test::plan(disk, kDirectory, by_position));
  ASSERT_THAT(plan.records, SizeIs(3));
  EXPECT_EQ(plan.records[0].number, EventNumber(0));
  EXPECT_EQ(plan.records[1].number, EventNumber(1));
  EXPECT_EQ(plan.records[2].number, EventNumber(2));
  value(test::redact(disk, kDirectory, by_position));
  for (int n = 0; n < 3; ++n) {
    EXPECT_TRUE(read(n).is_redacted);
  }
  EXPECT_THAT(damage(), IsEmpty());
}

TEST_F(Redaction, LeavesStreamsWithTheSameHashAlone) {
  // Two streams with one hash in the index.
  builder.write("c2ffqlptrdepdm", {event(secret(1))});
  builder.write("cedldnj4ssvq4i", {event(secret(2))});
  builder.point();
  builder.close();
  const RedactionRequest request{.events = {{"cedldnj4ssvq4i", EventNumber(0)}}};
  EXPECT_THAT(value(test::plan(disk, kDirectory, request)).records, SizeIs(1));
  value(test::redact(disk, kDirectory, request));
  EXPECT_EQ(as_text(read(0, "c2ffqlptrdepdm").data), secret(1));
  EXPECT_TRUE(read(0, "cedldnj4ssvq4i").is_redacted);
}

TEST_F(Redaction, BlanksEveryRecordOfAnEventThatHasSeveral) {
  for (int n = 0; n < 2; ++n) {
    builder.write_number_0("customer-7", event(secret(n)));
  }
  builder.point();
  builder.close();
  const auto plan = value(test::plan(disk, kDirectory, events({0})));
  EXPECT_THAT(plan.records, SizeIs(2));
  value(test::redact(disk, kDirectory, events({0})));
  for (int n = 0; n < 2; ++n) {
    EXPECT_THAT(test::files_with(disk, kDirectory, secret(n)), IsEmpty());
  }
}

TEST_F(Redaction, FindsInTheLogWhatTheIndexHas) {
  builder.write("customer-7", {event(secret(0))});
  builder.transaction("customer-7", 2);
  builder.transaction("other", 2);
  builder.point();
  builder.close();
  auto request = events({0, 2});
  const auto by_index = value(test::plan(disk, kDirectory, request));
  request.scan_log = true;
  const auto by_log = value(test::plan(disk, kDirectory, request));
  EXPECT_EQ(by_log.to_list(), by_index.to_list());
  request.events.push_back({"customer-7", EventNumber(3)});
  const auto missing = value(test::plan(disk, kDirectory, request)).missing;
  EXPECT_THAT(missing, ElementsAre("3@customer-7: the log has no such event"));
}

TEST_F(Redaction, FindsEventsOfADeletedStream) {
  builder.write("customer-7", {event(secret(0))});
  builder.hard_delete("customer-7");
  builder.point();
  builder.close();
  value(test::redact(disk, kDirectory, events({0})));
  EXPECT_THAT(test::files_with(disk, kDirectory, secret(0)), IsEmpty());
  EXPECT_THAT(damage(), IsEmpty());
}

TEST_F(Redaction, RefusesWhatIsNoEventOfAUser) {
  builder.write("customer-7", 1);
  builder.write("$ce-customer", 1);
  builder.metadata("customer-7", R"({"$maxCount":5})");
  builder.metadata("customer-7", R"({"$maxCount":6})");
  builder.hard_delete("gone");
  builder.transaction("customer-7", 1);
  builder.point();
  builder.close();
  const auto refusal = [&](const RedactionRequest& request) {
    const auto before = chunk_files();
    const auto outcome = test::redact(disk, kDirectory, request);
    EXPECT_FALSE(outcome);
    EXPECT_EQ(chunk_files(), before);
    if (outcome) {
      return std::string();
    }
    EXPECT_EQ(outcome.error().code, Errc::kRefused);
    return outcome.error().message;
  };
  const auto by_name = [&](std::string stream, EventNumber number) {
    return refusal({.events = {{std::move(stream), number}}});
  };
  EXPECT_THAT(by_name("$ce-customer", EventNumber(0)), HasSubstr("system stream"));
  EXPECT_THAT(by_name("$scavengePoints", EventNumber(0)), HasSubstr("scavenge point"));
  EXPECT_THAT(by_name("$$customer-7", EventNumber(0)), HasSubstr("--metadata-streams"));
  EXPECT_THAT(by_name("gone", kDeletedStream), HasSubstr("tombstone"));
  EXPECT_THAT(
      refusal({.events = {{"$ce-customer", EventNumber(0)}, {"customer-7", EventNumber(77)}}}),
      AllOf(HasSubstr("system stream"), HasSubstr("not there: 77@customer-7")))
      << "all at once";
  EXPECT_THAT(refusal({.events = {{"$$customer-7", EventNumber(1)}}, .metadata_streams = true}),
              HasSubstr("newest metadata"));
  // Markers and commits, by position.
  const auto database = value(test::open_to_read(disk, kDirectory));
  log::LogCursor cursor(database->transaction_log(), LogPosition(0),
                        database->transaction_log().end());
  std::vector<std::string> reasons;
  while (const auto record = value(cursor.next())) {
    const auto* prepare = record->prepare();
    if (prepare == nullptr || (prepare->flags & log::prepare_flags::kData) == 0) {
      reasons.push_back(refusal({.positions = {record->position()}}));
    }
  }
  EXPECT_THAT(reasons, ElementsAre(HasSubstr("tombstone"), HasSubstr("marker of a transaction"),
                                   HasSubstr("marker of a transaction"), HasSubstr("a commit")));
}

TEST_F(Redaction, TakesReplacedMetadataOnRequest) {
  builder.metadata("customer-7", R"({"$maxCount":5,"owner":"Ada Lovelace"})");
  builder.metadata("customer-7", R"({"$maxCount":6})");
  builder.point();
  builder.close();
  value(test::redact(disk, kDirectory,
                     {.events = {{"$$customer-7", EventNumber(0)}}, .metadata_streams = true}));
  EXPECT_THAT(test::files_with(disk, kDirectory, "Ada Lovelace"), IsEmpty());
  const auto database = value(test::open_to_read(disk, kDirectory));
  EXPECT_EQ(value(database->metadata("customer-7")).max_count, 6);
}

TEST_F(Redaction, OfAMissingEventChangesNothing) {
  fill();
  const auto before = chunk_files();
  const auto outcome = test::redact(disk, kDirectory, events({1, 77}));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kNotFound);
  EXPECT_THAT(outcome.error().message, HasSubstr("77@customer-7"));
  EXPECT_EQ(chunk_files(), before);
  value(test::redact(disk, kDirectory, events({1, 77}), {.skip_missing = true}));
  EXPECT_TRUE(read(1).is_redacted);
}

TEST_F(Redaction, OfTheActiveChunkNeedsConsentAndCompletesIt) {
  builder.write("customer-7", {event(secret(0))});
  builder.close();
  const auto refused = test::redact(disk, kDirectory, events({0}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("--complete-chunk"));
  const auto chunks = value(test::redact(disk, kDirectory, events({0}), {.complete_chunk = true}));
  EXPECT_EQ(chunks.at(0).to, "chunk-000000.000001");
  EXPECT_TRUE(read(0).is_redacted);
  EXPECT_THAT(damage(), IsEmpty());
  // It is written on behind that.
  builder.open();
  builder.write("customer-7", {event(secret(1))});
  builder.close();
  EXPECT_EQ(as_text(read(1).data), secret(1));
  EXPECT_THAT(damage(), IsEmpty());
}

TEST_F(Redaction, RefusesLeftoversOfOthersAndRemovesItsOwn) {
  fill();
  const auto chunk = value(test::plan(disk, kDirectory, events({0}))).chunks.at(0).file;
  const auto content = value(read_file(disk, kDirectory / chunk));
  write_file("11111111-1111-1111-1111-111111111111.scavenge.tmp", as_text(content));
  const auto refused = test::redact(disk, kDirectory, events({0}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--remove-leftovers"));
  value(test::redact(disk, kDirectory, events({0}), {.remove_leftovers = true}));
  EXPECT_THAT(test::files_with(disk, kDirectory, secret(0)), IsEmpty());
  // What an interrupted redaction leaves: its copy, and the file that is replaced already.
  write_file("22222222-2222-2222-2222-222222222222.redact.tmp", as_text(content));
  write_file(chunk, as_text(content));
  const auto plan = value(test::plan(disk, kDirectory, events({0})));
  ASSERT_THAT(plan.leftovers, SizeIs(2));
  EXPECT_TRUE(plan.leftovers[0].of_redaction);
  EXPECT_TRUE(plan.leftovers[1].of_redaction);
  EXPECT_THAT(value(test::redact(disk, kDirectory, events({0}))), IsEmpty());
  EXPECT_THAT(test::files_with(disk, kDirectory, secret(0)), IsEmpty());
}

TEST_F(Redaction, RefusesAnUnfinishedScavenge) {
  fill();
  ok(disk.make_directories("/db/index/scavenging"));
  {
    const auto state =
        value(scavenge::ScavengeState::open(disk, "/db/index", &index::hash_stream, {}));
    ok(state->begin());
    ok(state->set_checkpoint({.point = {LogPosition(0), EventNumber(4), test::kTestTime, 0},
                              .stage = scavenge::Stage::kExecutingChunks,
                              .done_chunk = {},
                              .done_stream = {}}));
    ok(state->commit());
  }
  const auto refused = test::redact(disk, kDirectory, events({0}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("scavenge to point 4 is unfinished"));
}

TEST_F(Redaction, LeavesADamagedChunkAsItIs) {
  fill();
  const auto chunk = value(test::plan(disk, kDirectory, events({0}))).chunks.at(0).file;
  auto content = value(read_file(disk, kDirectory / chunk));
  content.at(as_text(content).find("xxxx")) ^= std::byte{1};  // in the data of another event
  ok(disk.set_read_only(kDirectory / chunk, false));
  ok(write_file_durably(disk, kDirectory / chunk, content));
  const auto outcome = test::redact(disk, kDirectory, events({0}));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kCorruption);
  EXPECT_EQ(value(read_file(disk, kDirectory / chunk)), content);
  EXPECT_THAT(value(test::plan(disk, kDirectory, events({0}))).leftovers, IsEmpty());
}

TEST_F(Redaction, ChangesNothingOnAFullDisk) {
  fill();
  const auto before = chunk_files();
  disk.set_free_space(1000);
  const auto outcome = test::redact(disk, kDirectory, events({0}));
  disk.set_free_space(std::nullopt);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kNoSpace);
  EXPECT_EQ(chunk_files(), before);
}

TEST_F(Redaction, StopsBetweenPieces) {
  fill();
  const auto plan = value(test::plan(disk, kDirectory, events({0})));
  log::LogOptions options;
  options.access = log::Access::kWrite;
  options.assume_stopped = true;
  const auto log =
      value(log::TransactionLog::open(disk, kDirectory, options, clock, random, null_log()));
  RedactionJob job(disk, *log, plan, {}, random, null_log());
  value(job.step({}));
  job.request_stop();
  const auto outcome = job.step({});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kCancelled);
}

TEST_F(Redaction, OfAListIsAppliedToTheSameHistoryOnly) {
  fill();
  const auto copy = disk.clone();
  const auto list = value(test::plan(disk, kDirectory, events({1, 4}))).to_list();
  value(test::redact(disk, kDirectory, events({1, 4})));
  // It is the same afterwards, and holds on a copy from before.
  EXPECT_EQ(value(test::plan(disk, kDirectory, events({1, 4}))).to_list(), list);
  EXPECT_EQ(value(test::plan(disk, kDirectory, {.listed = list})).to_do(), 0U);
  value(test::redact(*copy, kDirectory, {.listed = list}));
  EXPECT_THAT(test::files_with(*copy, kDirectory, secret(4)), IsEmpty());
  auto other = list;
  std::swap(other[0].position, other[1].position);
  const auto refused = test::redact(disk, kDirectory, {.listed = other});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("another database"));
}

}  // namespace
}  // namespace verger::redaction
