#include "nodeagent/external/database_look.h"

#include <fstream>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/sqlite.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_hash.h"

/// Looks at directories that a 24.6 server wrote.
namespace verger::external {
namespace {

using nlohmann::json;

class DatabaseLook : public ::testing::Test {
 protected:
  void unpack(const std::string& name) {
    test::unpack_fixture("scavenge/" + name, directory_.path() / "db");
    place_.database = directory_.path() / "db";
  }
  LogFacts look() {
    LogLook job({posix_file_system(), place_, system_clock(), system_random(), null_log()});
    const auto done = job.step({});
    EXPECT_TRUE(done.has_value()) << done.error().message;
    return job.facts();
  }
  static json point_of(const std::string& name) {
    std::ifstream file(test::fixtures_directory() / "scavenge" / name / "case.json");
    return json::parse(file).at("scavengePoint");
  }
  test::TempDirectory directory_;
  DatabasePlace place_;
};

TEST_F(DatabaseLook, SeesThePointThatTheServerMadeAndFinished) {
  unpack("server-makes-point/after.tar.zst");
  const auto expected = point_of("server-makes-point");
  const auto facts = look();
  ASSERT_EQ(facts.points.size(), 1U);
  EXPECT_EQ(facts.points[0].position.value(), expected.at("pos"));
  EXPECT_EQ(facts.chunk_size, 262'144);
  EXPECT_EQ(facts.database_id.size(), 36U);
  const auto progress =
      read_scavenge_progress(posix_file_system(), place_.index_directory(), 1ULL << 30U);
  ASSERT_TRUE(progress.has_value()) << progress.error().message;
  ASSERT_TRUE(progress->finished.has_value());
  EXPECT_EQ(progress->finished->number, expected.at("eventNumber"));
  EXPECT_EQ(progress->finished->position, expected.at("pos"));
  EXPECT_FALSE(progress->unfinished.has_value());
}

TEST_F(DatabaseLook, KnowsTheSameDatabaseBeforeAndAfterAndChangesNothing) {
  unpack("server-makes-point/before.tar.zst");
  const auto before_looking = test::tree_hash(place_.database);
  const auto before = look();
  EXPECT_TRUE(before.points.empty());
  const auto nothing =
      read_scavenge_progress(posix_file_system(), place_.index_directory(), 1ULL << 30U);
  ASSERT_TRUE(nothing.has_value());
  EXPECT_FALSE(nothing->finished.has_value());
  EXPECT_EQ(test::tree_hash(place_.database), before_looking);
  test::unpack_fixture("scavenge/server-makes-point/after.tar.zst", directory_.path() / "after");
  place_.database = directory_.path() / "after";
  EXPECT_EQ(look().database_id, before.database_id);
}

TEST_F(DatabaseLook, CountsOfEachChunkTheNewestVersionOnly) {
  unpack("server-makes-point/after.tar.zst");
  const auto first = list_chunks(posix_file_system(), place_.database);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->file_count, 4);
  // The server deletes the former version some time after it has switched.
  std::ofstream(place_.database / "chunk-000000.000001") << std::string(1000, 'x');
  std::ofstream(place_.database / "chunk-000000.000002.tmp") << "x";
  const auto second = list_chunks(posix_file_system(), place_.database);
  EXPECT_EQ(second->file_count, 4);
  EXPECT_EQ(second->total_bytes, first->total_bytes);
}

TEST_F(DatabaseLook, ReadsALargeStateDatabaseInPlaceOnceTheServerHasClosedIt) {
  unpack("server-makes-point/after.tar.zst");
  const auto before = test::tree_hash(place_.database);
  const auto read = read_scavenge_progress(posix_file_system(), place_.index_directory(), 10);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_TRUE(read->finished.has_value());
  EXPECT_EQ(read->finished->number,
            read_scavenge_progress(posix_file_system(), place_.index_directory(), 1ULL << 30U)
                ->finished->number);
  EXPECT_EQ(test::tree_hash(place_.database), before) << "nothing is left beside it";
  std::ofstream(place_.index_directory() / "scavenging" / "scavenging.db-wal") << "x";
  const auto refused = read_scavenge_progress(posix_file_system(), place_.index_directory(), 10);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
}

TEST_F(DatabaseLook, DoesNotTakeACheckpointThatItCannotReadForNone) {
  unpack("server-makes-point/after.tar.zst");
  const auto path = place_.index_directory() / "scavenging" / "scavenging.db";
  const auto write = [&](std::string_view checkpoint) {
    auto state = sqlite::Database::open(posix_file_system(), path, {.own_state = false});
    ASSERT_TRUE(state) << state.error().message;
    const auto done = state->execute(fmt::format("UPDATE Checkpoint SET value = '{}'", checkpoint));
    ASSERT_TRUE(done) << done.error().message;
  };
  const auto read = [&](std::uint64_t limit) {
    return read_scavenge_progress(posix_file_system(), place_.index_directory(), limit);
  };
  write(R"({"scavengePoint":{"position":7,"effectiveNow":"2031-01-05T00:00:00"},)"
        R"("schemaVersion":"V0","checkpointStage":"RemovingFromArchive"})");
  for (const std::uint64_t limit : {1ULL << 30U, 10ULL}) {
    const auto newer = read(limit);
    ASSERT_FALSE(newer.has_value());
    EXPECT_EQ(newer.error().code, Errc::kUnsupported);
    EXPECT_NE(newer.error().message.find("is not known"), std::string::npos);
    EXPECT_NE(newer.error().message.find("\"RemovingFromArchive\""), std::string::npos);
  }
  write("{");
  EXPECT_EQ(read(1ULL << 30U).error().code, Errc::kCorruption);
}

}  // namespace
}  // namespace verger::external
