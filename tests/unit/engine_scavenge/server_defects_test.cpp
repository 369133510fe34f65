// Where the server fails in the middle of a scavenge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/scavenge/estimate.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using testing::HasSubstr;
namespace flags = log::prepare_flags;

class ServerDefect : public testing::Test {
 protected:
  ServerDefect() {
    options_.chunk_size = 4096;
    run_.chunk_size = options_.chunk_size;
  }
  /// Two chunks with something to remove; the second one has a committed marker without a number.
  void build(std::string_view stream) {
    DatabaseBuilder builder(files_, "/db", options_);
    builder.metadata("a", R"({"$maxCount":1})");
    while (builder.write("a").end < LogPosition(4096)) {
    }
    builder.write("a", 3);
    if (stream == "gone") {
      builder.write(stream);
    }
    auto& log = builder.database().transaction_log();
    log::Prepare marker;
    marker.position = kNoPosition;
    marker.flags = flags::kTransactionBegin | flags::kTransactionEnd | flags::kIsCommitted;
    marker.transaction_position = kNoPosition;
    marker.expected_version = streams::kExpectAny;
    marker.stream = stream;
    marker.event_id = builder.random().uuid();
    marker.correlation_id = builder.random().uuid();
    marker.timestamp = builder.clock().now();
    position_ = log.append(std::span(&marker, 1)).value().front();
    ASSERT_TRUE(log.flush());
    ASSERT_TRUE(builder.database().commit_up_to(log.end()));
    if (stream == "gone") {
      builder.hard_delete(stream);
    }
    run_.point = builder.point();
    builder.write("b");
  }
  std::vector<std::map<std::int64_t, std::string>> records() {
    std::vector<std::map<std::int64_t, std::string>> result;
    for (auto& chunk : take_snapshot(files_, "/db").chunks) {
      result.push_back(std::move(chunk.records));
    }
    return result;
  }

  MemoryFileSystem files_;
  BuilderOptions options_;
  ScavengeRun run_;
  LogPosition position_;
};

TEST_F(ServerDefect, ARecordWithoutANumberIsNamedBeforeAnythingHasChanged) {
  build("odd");
  const auto before = records();
  const auto entries = take_snapshot(files_, "/db").entries;
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kUnsupported);
  EXPECT_THAT(result.error().message,
              HasSubstr(fmt::format("the event number -1 in stream \"odd\" at log position {}",
                                    position_)));
  EXPECT_EQ(records(), before);
  // Repeated, it runs as far as the server gets: to the chunk with the record.
  const auto again = run_scavenge(files_, "/db", run_);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("in stream \"odd\""));
  EXPECT_EQ(records()[1], before[1]);
  EXPECT_EQ(take_snapshot(files_, "/db").entries, entries);
}

TEST_F(ServerDefect, ARecordWithoutANumberEndsTheEstimateToo) {
  build("odd");
  const auto database = open_database(files_, "/db", run_, log::Access::kReadOnly).value();
  MemoryFileSystem scratch;
  ASSERT_TRUE(scratch.make_directories("/scratch"));
  ManualClock clock;
  SeededRandom random{3};
  const auto preview =
      scavenge::Preview::open({database->transaction_log(), database->stream_index(), files_, clock,
                               random, null_log()},
                              {scratch, "/scratch"}, run_.options)
          .value();
  preview->choose(*run_.point);
  while (preview->step({.units = 1000}).value().kind != StepOutcome::Kind::kDone) {
  }
  scavenge::EstimateJob job(*preview, 1);
  auto outcome = job.step({.units = 1000});
  while (outcome && outcome->kind != StepOutcome::Kind::kDone) {
    outcome = job.step({.units = 1000});
  }
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("in stream \"odd\" at log position"));
}

TEST_F(ServerDefect, ARecordWithoutANumberIsNoMatterInAChunkThatStays) {
  build("odd");
  run_.point->threshold = 1000;
  const auto result = run_scavenge(files_, "/db", run_);
  EXPECT_TRUE(result) << result.error().message;
}

TEST_F(ServerDefect, ARecordWithoutANumberGoesWithItsDeletedStream) {
  build("gone");
  EXPECT_FALSE(run_scavenge(*files_.clone(), "/db", run_)) << "the number decides";
  run_.options.unsafe_ignore_hard_delete = true;
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_TRUE(result) << result.error().message;
  for (const auto& chunk : records()) {
    EXPECT_FALSE(chunk.contains(position_.value()));
  }
}

TEST_F(ServerDefect, AnAgeThatReachesBeyondTheBeginningOfTimeExpiresNothing) {
  {
    DatabaseBuilder builder(files_, "/db", options_);
    // Some 28,000 years. The second stream's count still holds.
    builder.metadata("old", R"({"$maxAge":900000000000})");
    builder.metadata("counted", R"({"$maxAge":900000000000,"$maxCount":2})");
    builder.write("old", 5);
    builder.write("counted", 5);
    run_.point = builder.point();
  }
  const auto result = run_scavenge(files_, "/db", run_);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->progress.records_discarded, 3U);
}

}  // namespace
}  // namespace verger::test
