// The case edge-table says for each row of the edge-case table what must be left of its stream.
#include <fstream>
#include <gtest/gtest.h>

#include "engine/streams/stream_names.h"
#include "tests/support/fixtures.h"
#include "tests/support/scavenge/fixture_case.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Log position -> stream and number of each prepare.
std::map<std::int64_t, std::pair<std::string, std::int64_t>> prepares(const DatabaseSnapshot& db) {
  std::map<std::int64_t, std::pair<std::string, std::int64_t>> result;
  for (const auto& chunk : db.chunks) {
    for (const auto& [position, framed] : chunk.records) {
      const auto record =
          log::decode_record(as_bytes(framed).subspan(4, framed.size() - log::kFramingSize));
      if (const auto* prepare = std::get_if<log::Prepare>(&record.value())) {
        result[position] = {std::string(prepare->stream), prepare->event_number().value()};
      }
    }
  }
  return result;
}

std::map<std::string, Numbers> by_stream(
    const std::map<std::int64_t, std::pair<std::string, std::int64_t>>& records) {
  std::map<std::string, Numbers> result;
  for (const auto& [position, record] : records) {
    result[record.first].push_back(record.second);
  }
  for (auto& [stream, numbers] : result) {
    std::ranges::sort(numbers);
  }
  return result;
}

TEST(EdgeTable, LeavesWhatEachRowSays) {
  FixtureCase fixture("edge-table");
  const auto files = fixture.unpack("before");
  const auto named = prepares(take_snapshot(*files, "/db"));
  const auto before = by_stream(named);
  const auto result = run_scavenge(*files, "/db", fixture.run());
  ASSERT_TRUE(result) << result.error().message;
  auto after = by_stream(prepares(take_snapshot(*files, "/db")));
  const auto database = open_database(*files, "/db", fixture.run(), log::Access::kReadOnly).value();
  const auto& index = database->stream_index();

  std::ifstream file(fixtures_directory() / "scavenge" / "edge-table" / "expected.json");
  const auto rows = nlohmann::json::parse(file);
  ASSERT_GT(rows.size(), 200U);
  for (const auto& row : rows) {
    const auto stream = row.at("stream").get<std::string>();
    SCOPED_TRACE(row.dump());
    EXPECT_EQ(before.at(stream), row.at("numbersBefore").get<Numbers>());
    EXPECT_EQ(after[stream], row.at("recordNumbersAfter").get<Numbers>());
    if (row.contains("metadataNumbersAfter")) {
      EXPECT_EQ(after[streams::metastream_of(stream)],
                row.at("metadataNumbersAfter").get<Numbers>());
    }
    Numbers entries;
    for (const auto& entry :
         index.range_forward(index.hash(stream), EventNumber(0), kDeletedStream, 100'000).value()) {
      if (named.at(entry.position.value()).first == stream) {
        entries.push_back(entry.number.value());
      }
    }
    // Of several entries with one number a lookup yields the first.
    entries.erase(std::ranges::unique(entries).begin(), entries.end());
    EXPECT_EQ(entries, row.at("indexNumbersAfter").get<Numbers>());
  }
}

}  // namespace
}  // namespace verger::test
