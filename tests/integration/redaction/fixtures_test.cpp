// Databases that a real server wrote, scavenged and merged: all is as it was but the blanked bytes,
// the flag and the MD5, and scavenges remove what they would have removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/redaction/redacted_copy.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/fixture_case.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Path kDirectory = "/db";
constexpr std::size_t kFlagsOffset = 14;  // behind length, type, version and position

/// Log positions of every third event of users in completed chunks.
std::vector<LogPosition> some_events(FileSystem& files) {
  std::vector<LogPosition> found;
  const auto database = value(open_to_read(files, kDirectory));
  int n = 0;
  for (const auto& chunk : database->transaction_log().chunks()) {
    auto scanner = value(log::ChunkScanner::open(chunk, chunk->start_position()));
    while (const auto record = value(scanner.next())) {
      const auto* prepare = record->prepare();
      if (prepare != nullptr && chunk->completed() && prepare->has(log::prepare_flags::kData) &&
          !prepare->has(log::prepare_flags::kStreamDelete) && !prepare->stream.starts_with('$') &&
          n++ % 3 == 0) {
        found.push_back(prepare->position);
      }
    }
  }
  return found;
}

/// The framed record with flag and 0xFF, made from the format's description alone.
std::string blanked(std::string framed) {
  const auto payload = as_bytes(framed).subspan(4, framed.size() - 8);
  const auto record = value(log::decode_record(payload));
  const auto data = std::get<log::Prepare>(record).data;
  const auto at = as_text(data).data() - framed.data();
  const auto size = data.size();
  framed[kFlagsOffset + 1] = static_cast<char>(framed[kFlagsOffset + 1] | 0x02);
  framed.replace(static_cast<std::size_t>(at), size, std::string(size, '\xff'));
  return framed;
}

std::map<std::int64_t, std::string> records_of(const DatabaseSnapshot& snapshot) {
  std::map<std::int64_t, std::string> records;
  for (const auto& chunk : snapshot.chunks) {
    EXPECT_EQ(chunk.problem, "");
    records.insert(chunk.records.begin(), chunk.records.end());
  }
  return records;
}

void blank(std::map<std::int64_t, std::string>& records, const std::vector<LogPosition>& events) {
  for (const auto position : events) {
    if (const auto at = records.find(position.value()); at != records.end()) {
      at->second = blanked(at->second);
    }
  }
}

bool is_finished(FileSystem& files) {
  return value(plan(files, kDirectory, {})).unfinished_scavenge.empty();
}

class RedactionOfFixtures : public testing::TestWithParam<std::string> {};

TEST_P(RedactionOfFixtures, ChangesNothingBesides) {
  FixtureCase fixture(GetParam());
  auto archives = fixture.afters();
  archives.emplace_back("before");
  for (const auto& archive : archives) {
    SCOPED_TRACE(archive);
    const auto files = fixture.unpack(archive);
    if (!is_finished(*files)) {
      continue;
    }
    const auto events = some_events(*files);
    if (events.empty()) {
      continue;
    }
    const auto before = take_snapshot(*files, kDirectory);
    const auto made = value(plan(*files, kDirectory, {.positions = events}));
    EXPECT_THAT(made.refused, IsEmpty());
    const auto redacted =
        value(redact(*files, kDirectory, {.positions = events}, {.remove_leftovers = true}));
    EXPECT_EQ(redacted.size(), made.chunks.size());
    const auto after = take_snapshot(*files, kDirectory);
    EXPECT_EQ(after.entries, before.entries);
    EXPECT_EQ(after.state, before.state);
    ASSERT_EQ(after.chunks.size(), before.chunks.size());
    std::size_t replaced = 0;
    for (std::size_t n = 0; n < after.chunks.size(); ++n) {
      const auto& old = before.chunks[n];
      const auto& now = after.chunks[n];
      EXPECT_EQ(std::tie(now.start, now.end, now.scavenged, now.completed, now.physical_size,
                         now.logical_size, now.file_size),
                std::tie(old.start, old.end, old.scavenged, old.completed, old.physical_size,
                         old.logical_size, old.file_size));
      replaced += now.version != old.version ? 1 : 0;
    }
    EXPECT_EQ(replaced, redacted.size());
    auto expected = records_of(before);
    blank(expected, events);
    EXPECT_EQ(records_of(after), expected);
    EXPECT_EQ(value(plan(*files, kDirectory, {.positions = events})).to_do(), 0U);
  }
}

/// Scavenged and merged chunks among them: both ways make the same bytes, so the same MD5.
TEST_P(RedactionOfFixtures, ACopyBesideTheServerIsTheFileOfTheStoppedOne) {
  FixtureCase fixture(GetParam());
  for (const auto& archive : fixture.afters()) {
    SCOPED_TRACE(archive);
    const auto files = fixture.unpack(archive);
    const auto events = some_events(*files);
    if (!is_finished(*files) || events.empty()) {
      continue;
    }
    std::map<std::string, redaction::RedactedCopy> copies;
    {
      const auto database = value(open_to_read(*files, kDirectory));
      const auto made = value(plan(*files, kDirectory, {.positions = events}));
      SeededRandom random(3);
      Bytes buffer;
      for (const auto& chunk : made.chunks) {
        redaction::CopyRequest request{
            .directory = kDirectory, .chunk_file = chunk.file, .records = {}};
        for (const auto index : chunk.records) {
          const auto& record = made.records[index];
          const auto read = value(database->transaction_log().read(record.position, buffer));
          request.records.push_back({.event = {.stream = record.stream, .number = record.number},
                                     .position = record.position,
                                     .file_offset = read.file_offset});
        }
        redaction::RedactedCopyJob job(*files, random, request);
        while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
        }
        copies[chunk.file] = job.copy();
      }
      ok(files->sync_directory(kDirectory));
    }
    EXPECT_EQ(value(redaction::remove_copies(*files, kDirectory)).size(), copies.size());
    const auto redacted =
        value(redact(*files, kDirectory, {.positions = events}, {.remove_leftovers = true}));
    ASSERT_EQ(redacted.size(), copies.size());
    for (const auto& chunk : redacted) {
      EXPECT_EQ(copies[chunk.from].md5_before, chunk.md5_before) << chunk.from;
      EXPECT_EQ(copies[chunk.from].md5_after, chunk.md5_after) << chunk.from;
      EXPECT_EQ(copies[chunk.from].blanked, chunk.records) << chunk.from;
    }
  }
}

TEST_P(RedactionOfFixtures, ChangesNoDecisionOfAScavenge) {
  FixtureCase fixture(GetParam());
  if (!fixture.server_scavenged() || fixture.point_is_newer()) {
    GTEST_SKIP() << "there is no point in the log to scavenge to";
  }
  const auto redacted = fixture.unpack("before");
  const auto plain = fixture.unpack("before");
  if (!is_finished(*redacted)) {
    GTEST_SKIP() << "its scavenge is resumed";
  }
  const auto events = some_events(*redacted);
  value(redact(*redacted, kDirectory, {.positions = events}, {.remove_leftovers = true}));
  value(run_scavenge(*redacted, kDirectory, fixture.run()));
  value(run_scavenge(*plain, kDirectory, fixture.run()));
  const auto expected = take_snapshot(*plain, kDirectory);
  const auto after = take_snapshot(*redacted, kDirectory);
  auto records = records_of(expected);
  blank(records, events);
  EXPECT_EQ(records_of(after), records);
  EXPECT_EQ(after.entries, expected.entries);
  EXPECT_EQ(after.state, expected.state);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RedactionOfFixtures,
    testing::ValuesIn(scavenge_cases_where([](const FixtureCase&) { return true; })), case_name);

TEST(RedactionOfFixtures, FindsRecordsThatAScavengeLetGoFromTheIndexOnly) {
  FixtureCase fixture("threshold-200");  // light chunks stay, their entries go all the same
  const auto files = fixture.unpack("after");
  const auto events = some_events(*files);
  const auto records = value(plan(*files, kDirectory, {.positions = events})).records;
  std::size_t found = 0;
  for (const auto& record : records) {
    redaction::RedactionRequest request{.events = {{record.stream, record.number}}};
    if (record.number == kNoStream || !value(plan(*files, kDirectory, request)).records.empty()) {
      continue;
    }
    request.scan_log = true;
    const auto made = value(plan(*files, kDirectory, request));
    EXPECT_THAT(made.missing, IsEmpty());
    ASSERT_EQ(made.records.size(), 1U);
    EXPECT_EQ(made.records[0].position, record.position);
    ++found;
  }
  EXPECT_GT(found, 10U);
}

TEST(RedactionOfFixtures, IsRefusedWhileAServersScavengeIsUnfinished) {
  FixtureCase fixture("killed-and-resumed");
  const auto files = fixture.unpack("interrupted");
  const auto events = some_events(*files);
  const auto outcome = redact(*files, kDirectory, {.positions = events});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kRefused);
  EXPECT_THAT(outcome.error().message, HasSubstr("is unfinished: finish it first"));
}

}  // namespace
}  // namespace verger::test
