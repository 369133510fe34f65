#include "nodeagent/external/database_look.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/forwarding_file_system.h"
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

/// Counts what is read.
class CountingFile final : public ForwardingFile {
 public:
  CountingFile(std::unique_ptr<File> file, std::size_t& bytes)
      : ForwardingFile(std::move(file)), bytes_(bytes) {}
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    auto read = below().read_at(offset, into);
    bytes_ += read ? *read : 0;
    return read;
  }

 private:
  std::size_t& bytes_;
};

class CountingDisk final : public ForwardingFileSystem {
 public:
  CountingDisk() : ForwardingFileSystem(posix_file_system()) {}
  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
    VERGER_TRY(auto file, below().open(path, mode));
    return std::unique_ptr<File>(std::make_unique<CountingFile>(std::move(file), bytes_read));
  }
  std::size_t bytes_read = 0;
};

TEST_F(DatabaseLook, ReadsOnInALogThatItKnowsAndNothingOfOneThatStandsStill) {
  unpack("server-makes-point/after.tar.zst");
  CountingDisk disk;
  const auto look_again = [&](std::optional<LogFacts> known) {
    disk.bytes_read = 0;
    LogLook job({disk, place_, system_clock(), system_random(), null_log()}, std::move(known));
    for (int steps = 0; steps < 10'000; ++steps) {
      const auto done = job.step({});
      EXPECT_TRUE(done.has_value()) << done.error().message;
      if (!done || done->kind == StepOutcome::Kind::kDone) {
        break;
      }
    }
    return job.facts();
  };
  const auto first = look_again(std::nullopt);
  const auto whole = disk.bytes_read;
  ASSERT_EQ(first.points.size(), 1U);
  EXPECT_EQ(look_again(first).points, first.points);
  EXPECT_LE(disk.bytes_read, 40U) << "five checkpoints";
  {
    streams::DatabaseOptions options;
    options.log.access = log::Access::kWrite;
    options.index.stream_existence_filter_size = 0;
    auto database =
        streams::Database::open(posix_file_system(), place_.database, std::move(options),
                                /*commit_all=*/true, system_clock(), system_random(), null_log());
    ASSERT_TRUE(database.has_value()) << database.error().message;
    const auto written = (*database)->append_scavenge_point(0, 7);
    ASSERT_TRUE((*database)->commit_up_to((*database)->transaction_log().end()).has_value());
  }
  const auto second = look_again(first);
  EXPECT_LT(disk.bytes_read, whole);
  ASSERT_EQ(second.points.size(), 2U);
  EXPECT_EQ(second.points[1].threshold, 7);
  EXPECT_EQ(second.points, look_again(std::nullopt).points);
  EXPECT_EQ(second.database_id, first.database_id);
  // A log that was cut is read anew.
  auto ahead = second;
  ahead.read_to = LogPosition(ahead.read_to.value() + 100'000'000);
  ahead.points.push_back(second.points[1]);
  EXPECT_EQ(look_again(ahead).points, second.points);
}

TEST_F(DatabaseLook, DoesNotReadTheScavengeStateAgainWhileNothingWasWritten) {
  unpack("server-makes-point/after.tar.zst");
  const auto state = place_.index_directory() / "scavenging" / "scavenging.db";
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(state, long_ago);
  const auto look_at = [&](std::optional<ProgressStamp> known) {
    FilesLook job(posix_file_system(), place_, 1ULL << 30U, std::move(known));
    EXPECT_TRUE(job.step({}).has_value());
    return job;
  };
  const auto first = look_at(std::nullopt);
  EXPECT_FALSE(first.progress_is_known());
  ASSERT_TRUE(first.stamp().has_value());
  EXPECT_TRUE(first.stamp()->settled);
  EXPECT_TRUE(look_at(first.stamp()).progress_is_known());
  std::ofstream(state.string() + "-wal") << "x";
  const auto beside = look_at(first.stamp());
  EXPECT_FALSE(beside.progress_is_known());
  EXPECT_FALSE(beside.stamp()->settled) << "a write that follows may have the same time";
  std::filesystem::remove(state.string() + "-wal");
  std::filesystem::last_write_time(state, long_ago + std::chrono::seconds(1));
  EXPECT_FALSE(look_at(first.stamp()).progress_is_known());
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

TEST(RestAfterLook, IsLongAfterALongLookButNotAsLongAsAMachineStoodStill) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  EXPECT_EQ(rest_after_look(seconds(0)), seconds(0));
  EXPECT_EQ(rest_after_look(seconds(1)), seconds(20));
  EXPECT_EQ(rest_after_look(minutes(3)), minutes(1));
}

}  // namespace
}  // namespace verger::external
