// Every database that the server wrote: what is in its files is what case.json says.
#include <fstream>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "tests/support/fixtures.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::log {
namespace {

using nlohmann::json;

struct Seen {
  std::uint64_t records = 0;
  std::int64_t last_end = 0;
};

/// Reads one chunk in order, at positions, and backwards, and compares the three.
Seen check_records(const std::shared_ptr<const Chunk>& chunk) {
  Seen seen;
  Bytes buffer;
  Bytes encoded;
  std::vector<LogPosition> positions;
  std::vector<PosmapEntry> entries;
  auto scanner = value(ChunkScanner::open(chunk, chunk->start_position()));
  while (auto record = value(scanner.next())) {
    encoded.clear();
    append_framed(encoded, record->record);
    EXPECT_TRUE(same_bytes(encoded, record->framed)) << record->position().value();
    EXPECT_TRUE(value(chunk->has_record_at(record->position())));
    const auto again = value(chunk->read(record->position(), buffer));
    EXPECT_TRUE(same_bytes(again.framed, record->framed));
    EXPECT_EQ(again.file_offset, record->file_offset);
    EXPECT_EQ(again.next, record->next);
    positions.push_back(record->position());
    entries.push_back({static_cast<std::int32_t>(record->file_offset) - kChunkHeaderSize,
                       record->position() - chunk->start_position()});
    ++seen.records;
    seen.last_end = record->next - chunk->start_position();
  }
  const auto map = value(chunk->posmap());
  if (chunk->header().scavenged) {
    EXPECT_EQ(map.size(), entries.size());
    for (std::size_t i = 0; i < std::min(map.size(), entries.size()); ++i) {
      EXPECT_EQ(map[i].actual, entries[i].actual);
      EXPECT_EQ(map[i].local, entries[i].local);
    }
  }
  LogPosition at = chunk->end_position();
  for (auto expected = positions.rbegin();; ++expected) {
    const auto before = value(chunk->read_before(at, buffer));
    if (!before) {
      EXPECT_EQ(expected, positions.rend());
      break;
    }
    if (expected == positions.rend()) {
      ADD_FAILURE() << "reads backwards beyond the first record";
      break;
    }
    EXPECT_EQ(before->position(), *expected);
    at = before->position();
  }
  return seen;
}

void check_database(const Path& directory, const json& expected) {
  LogOptions options;
  auto log = value(TransactionLog::open(posix_file_system(), directory, options, system_clock(),
                                        system_random(), null_log()));
  EXPECT_EQ(log->end().value(), expected.at("writer").get<std::int64_t>());
  if (expected.contains("chaser")) {  // the cluster case has less
    EXPECT_EQ(log->checkpoints().chaser.value(), expected.at("chaser").get<std::int64_t>());
    const auto epoch = expected.at("epoch").get<std::int64_t>();
    EXPECT_EQ(log->checkpoints().epoch.value(), epoch);
    EXPECT_EQ(log->epochs().last().value_or(Epoch{}).position.value(), epoch);
  }
  const auto chunks = log->chunks();
  const auto& listed = expected.at("chunks");
  ASSERT_EQ(chunks.size(), listed.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto& chunk = *chunks[i];
    const auto& want = listed[i];
    SCOPED_TRACE(want.at("file").get<std::string>());
    EXPECT_EQ(chunk.path().filename(), want.at("file").get<std::string>());
    EXPECT_EQ(chunk.start().value(), want.at("start").get<int>());
    EXPECT_EQ(chunk.end().value(), want.at("end").get<int>());
    EXPECT_EQ(chunk.header().scavenged, want.at("scavenged").get<bool>());
    EXPECT_EQ(chunk.completed(), !want.at("active").get<bool>());
    EXPECT_EQ(chunk.data_size(), want.at("physicalDataSize").get<std::int64_t>());
    EXPECT_EQ(chunk.file_size(), want.at("fileSize").get<std::uint64_t>());
    if (chunk.completed()) {
      EXPECT_EQ(chunk.footer()->logical_data_size, want.at("logicalDataSize").get<std::int64_t>());
      EXPECT_TRUE(chunk.verify_md5().has_value());
    }
    EXPECT_EQ(value(chunk.posmap()).size(), want.at("mapEntries").get<std::size_t>());
    const auto seen = check_records(chunks[i]);
    EXPECT_EQ(seen.records, want.at("records").get<std::uint64_t>());
    EXPECT_EQ(seen.last_end, want.at("logicalDataSize").get<std::int64_t>());
    total += seen.records;
  }
  // Across the chunks, forward and backward.
  std::vector<LogPosition> forward;
  LogCursor cursor(*log, LogPosition(0), log->end());
  while (const auto record = value(cursor.next())) {
    forward.push_back(record->position());
  }
  EXPECT_EQ(forward.size(), total);
  Bytes buffer;
  std::vector<LogPosition> backward;
  for (LogPosition at = log->end(); const auto record = value(read_before(*log, at, buffer));) {
    at = record->position();
    backward.push_back(at);
  }
  std::ranges::reverse(backward);
  EXPECT_EQ(forward, backward);
}

class ServerDatabase : public testing::TestWithParam<std::string> {};

TEST_P(ServerDatabase, ReadsAsTheServerWroteIt) {
  const std::string name = "scavenge/" + GetParam();
  std::ifstream file(test::fixtures_directory() / name / "case.json");
  const json description = json::parse(file);
  for (const std::string state : {"before", "after"}) {
    if (!std::filesystem::exists(test::fixtures_directory() / name / (state + ".tar.zst")) ||
        !description.contains(state) || !description.at(state).contains("chunks")) {
      continue;
    }
    SCOPED_TRACE(state);
    const test::TempDirectory directory;
    test::unpack_fixture(name + "/" + state + ".tar.zst", directory.path());
    check_database(directory.path(), description.at(state));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ServerDatabase, testing::ValuesIn(test::scavenge_cases()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace verger::log
