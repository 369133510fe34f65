// Databases that a real server wrote, against what that server said is in them.
#include <fstream>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "engine/streams/event_store.h"
#include "tests/support/fixtures.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_directory.h"

namespace verger::streams {
namespace {

using nlohmann::json;

json listing_of(std::string_view name) {
  std::ifstream file(test::fixtures_directory() / "plain" / name / "listing.json");
  return json::parse(file);
}

/// What the server says of an event of a stream that a commit record made one.
constexpr auto kUnknownPosition = std::numeric_limits<std::uint64_t>::max();

/// The server answered with its wall clock shortly after it had written the last record. (Records
/// written before by hand may be from the future.)
Ticks time_of_listing(const json& listing) {
  std::uint64_t last_position = 0;
  std::int64_t time = 0;
  for (const auto& [name, stream] : listing["streams"].items()) {
    for (const auto& event : stream["events"]) {
      const auto position = event["prepare"].get<std::uint64_t>();
      if (position != kUnknownPosition && position >= last_position) {
        last_position = position;
        time = event["createdTicks"].get<std::int64_t>();
      }
    }
  }
  return Ticks(kUnixEpoch.value() + time);
}

class PlainDatabase {
 public:
  PlainDatabase(std::string_view name, std::string_view archive, log::Access access)
      : listing(listing_of(name)), clock_(time_of_listing(listing)) {
    test::unpack_fixture(fmt::format("plain/{}/{}.tar.zst", name, archive), directory.path());
    DatabaseOptions options;
    options.log.access = access;
    options.index.read_only = access == log::Access::kReadOnly;
    options.index.cache_depth = 8;
    options.index.max_mem_table_size = 200;
    options.index.stream_existence_filter_size = 10'000;
    auto opened = Database::open(posix_file_system(), directory.path(), options,
                                 /*commit_all=*/true, clock_, random_, null_log());
    if (!opened) {
      throw std::runtime_error(opened.error().message);
    }
    database = *std::move(opened);
  }

  test::TempDirectory directory;
  json listing;
  std::unique_ptr<Database> database;

 private:
  test::ManualClock clock_;
  SeededRandom random_{7};
};

json to_json(const Event& event) {
  const bool known = event.commit_position != kNoPosition;
  const auto position = [&](LogPosition place) {
    return known ? static_cast<std::uint64_t>(place.value()) : kUnknownPosition;
  };
  return {{"number", event.number.value()},
          {"type", event.type},
          {"id", event.id.to_string()},
          {"contentType", event.is_json ? "application/json" : "application/octet-stream"},
          {"createdTicks", event.timestamp.value() - kUnixEpoch.value()},
          {"commit", position(event.commit_position)},
          {"prepare", position(event.prepare_position)},
          {"dataBytes", event.data.size()},
          {"dataSha256", to_hex(sha256(event.data))},
          {"metadataBytes", event.metadata.size()},
          {"metadataSha256", to_hex(sha256(event.metadata))}};
}

json to_short_json(const Event& event) {
  return {{"commit", event.commit_position.value()},
          {"prepare", event.prepare_position.value()},
          {"stream", event.stream},
          {"number", event.number.value()},
          {"type", event.type},
          {"dataSha256", to_hex(sha256(event.data))}};
}

std::string_view to_text(StreamStatus status) {
  switch (status) {
    case StreamStatus::kSuccess:
      return "ok";
    case StreamStatus::kNoStream:
      return "notFound";
    case StreamStatus::kDeleted:
      return "stream-deleted";
  }
  return "?";
}

json read_stream_forward(const Database& database, const std::string& stream, std::size_t page) {
  json answer = {{"events", json::array()}};
  auto from = EventNumber(0);
  for (;;) {
    const auto slice = database.read_forward(stream, from, page);
    if (!slice) {
      return {{"error", slice.error().message}};
    }
    answer["status"] = to_text(slice->status);
    for (const auto& event : slice->events) {
      answer["events"].push_back(to_json(event));
    }
    if (slice->end_of_stream) {
      return answer;
    }
    if (slice->next <= from) {
      return {{"error", fmt::format("next page {} after {}", slice->next, from)}};
    }
    from = slice->next;
  }
}

json read_stream_backward(const Database& database, const std::string& stream, std::size_t page) {
  json answer = {{"events", json::array()}};
  auto from = kDeletedStream;
  for (;;) {
    const auto slice = database.read_backward(stream, from, page);
    if (!slice) {
      return {{"error", slice.error().message}};
    }
    answer["status"] = to_text(slice->status);
    for (const auto& event : slice->events) {
      answer["events"].insert(answer["events"].begin(), to_json(event));
    }
    if (slice->end_of_stream) {
      return answer;
    }
    from = slice->next;
  }
}

json read_all(const Database& database, std::size_t page) {
  json events = json::array();
  AllPosition from{LogPosition(0), LogPosition(0)};
  for (;;) {
    const auto slice = database.read_all_forward(from, page);
    if (!slice) {
      return slice.error().message;
    }
    for (const auto& event : slice->events) {
      events.push_back(to_short_json(event));
    }
    if (slice->end) {
      return events;
    }
    from = slice->next;
  }
}

json read_all_reversed(const Database& database, std::size_t page) {
  json events = json::array();
  AllPosition from{database.committed(), database.committed()};
  for (;;) {
    const auto slice = database.read_all_backward(from, page);
    if (!slice) {
      return slice.error().message;
    }
    for (const auto& event : slice->events) {
      events.push_back(to_short_json(event));
    }
    if (slice->end) {
      std::ranges::reverse(events);
      return events;
    }
    from = slice->next;
  }
}

/// Leaves out what the restarted server itself wrote behind `end`.
json below(const json& events, std::uint64_t end) {
  json kept = json::array();
  for (const auto& event : events) {
    const auto position = event["commit"].get<std::uint64_t>();
    if (position == kUnknownPosition || position < end) {
      kept.push_back(event);
    }
  }
  return kept;
}

void expect_listing(const PlainDatabase& plain, std::size_t page) {
  const auto end = static_cast<std::uint64_t>(plain.database->committed().value());
  for (const auto& [stream, expected] : plain.listing["streams"].items()) {
    SCOPED_TRACE(stream);
    json wanted = {{"status", expected["status"]}, {"events", below(expected["events"], end)}};
    EXPECT_EQ(read_stream_forward(*plain.database, stream, page), wanted);
    EXPECT_EQ(read_stream_backward(*plain.database, stream, page), wanted);
  }
  const auto all = below(plain.listing["all"], end);
  EXPECT_EQ(read_all(*plain.database, page), all);
  EXPECT_EQ(read_all_reversed(*plain.database, page), all);
}

TEST(Plain, EveryStreamAndAllOfANeverScavengedDatabaseEqualTheServersListing) {
  const PlainDatabase plain("never-scavenged", "database", log::Access::kReadOnly);
  for (const std::size_t page : {1U, 7U, 4096U}) {
    SCOPED_TRACE(page);
    expect_listing(plain, page);
  }
}

TEST(Plain, TheRecoveredDatabaseEqualsTheServersListing) {
  const PlainDatabase plain("killed-while-writing", "recovered", log::Access::kReadOnly);
  expect_listing(plain, 50);
}

TEST(Plain, AnUncleanDatabaseIsReadWithoutRecovery) {
  const PlainDatabase plain("killed-while-writing", "database", log::Access::kReadOnly);
  expect_listing(plain, 50);
}

/// Framed records below `end`, in order.
std::vector<Bytes> records_below(const Database& database, LogPosition end) {
  std::vector<Bytes> records;
  log::LogCursor cursor(database.transaction_log(), LogPosition(0), end);
  for (;;) {
    const auto record = cursor.next();
    if (!record) {
      throw std::runtime_error(record.error().message);
    }
    if (!*record) {
      return records;
    }
    records.emplace_back((*record)->framed.begin(), (*record)->framed.end());
  }
}

TEST(Plain, AnUncleanDatabaseOpenedForWritingEqualsWhatTheServerRecovered) {
  const PlainDatabase ours("killed-while-writing", "database", log::Access::kWrite);
  expect_listing(ours, 50);
  const PlainDatabase servers("killed-while-writing", "recovered", log::Access::kReadOnly);
  const auto end = ours.database->committed();
  EXPECT_EQ(end.value(), 632'186);
  EXPECT_EQ(records_below(*ours.database, end), records_below(*servers.database, end));
}

TEST(Plain, ReadingChangesNothing) {
  const PlainDatabase plain("never-scavenged", "database", log::Access::kReadOnly);
  const auto before = std::filesystem::last_write_time(plain.directory.path());
  expect_listing(plain, 100);
  EXPECT_EQ(std::filesystem::last_write_time(plain.directory.path()), before);
  EXPECT_FALSE(std::filesystem::exists(plain.directory.path() / "verger.lock"));
}

}  // namespace
}  // namespace verger::streams
