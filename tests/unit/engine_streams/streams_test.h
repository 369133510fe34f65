#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/database/database_builder.h"

namespace verger::streams {

/// An empty small database on a disk in memory.
class StreamsTest : public ::testing::Test {
 protected:
  explicit StreamsTest(test::BuilderOptions options = {}) : builder(disk, "/db", options) {}

  Database& database() { return builder.database(); }

  /// Appends without committing.
  WriteResult append(std::string_view stream, std::int64_t expected, std::vector<NewEvent> events) {
    return database().append(stream, expected, std::move(events));
  }
  WriteResult append(std::string_view stream, std::int64_t expected, int count = 1) {
    std::vector<NewEvent> events;
    for (int i = 0; i < count; ++i) {
      events.push_back(builder.event());
    }
    return append(stream, expected, std::move(events));
  }
  void commit() {
    const auto done = database().commit_up_to(database().transaction_log().end());
    ASSERT_TRUE(done) << done.error().message;
  }

  StreamSlice forward(std::string_view stream, std::int64_t from = 0, std::size_t count = 1000) {
    auto slice = database().read_forward(stream, EventNumber(from), count);
    EXPECT_TRUE(slice) << slice.error().message;
    return slice ? *slice : StreamSlice{};
  }
  StreamSlice backward(std::string_view stream, EventNumber from = kDeletedStream,
                       std::size_t count = 1000) {
    auto slice = database().read_backward(stream, from, count);
    EXPECT_TRUE(slice) << slice.error().message;
    return slice ? *slice : StreamSlice{};
  }
  static std::vector<std::int64_t> numbers(const StreamSlice& slice) {
    std::vector<std::int64_t> result;
    for (const auto& event : slice.events) {
      result.push_back(event.number.value());
    }
    return result;
  }
  static Errc code(const WriteResult& result) { return result.error().error.code; }

  MemoryFileSystem disk;
  test::DatabaseBuilder builder;
};

}  // namespace verger::streams
