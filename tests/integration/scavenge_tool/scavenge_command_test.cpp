// `verger-db scavenge` as a person calls it, on a disk in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/base/sqlite.h"
#include "engine/tool/program.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using testing::HasSubstr;

class ScavengeCommand : public testing::Test {
 protected:
  ScavengeCommand() {
    BuilderOptions options;
    options.chunk_size = 4096;
    DatabaseBuilder builder(*files, "/db", options);
    builder.metadata("a", R"({"$maxCount":1})");
    for (int n = 0; n < 30; ++n) {
      builder.write("a");
    }
    first = builder.point();
    builder.write("a", 5);
  }

  int run(std::vector<std::string> arguments) {
    out.str("");
    err.str("");
    std::vector<const char*> argv{"verger-db", "scavenge", "/db", "--assume-stopped"};
    for (const auto& argument : arguments) {
      argv.push_back(argument.c_str());
    }
    tool::ToolContext context{*files, clock, random, null_log(), out, err, false, false};
    return tool::run_program(static_cast<int>(argv.size()), argv.data(), context);
  }
  [[nodiscard]] std::int64_t log_end() const {
    return load_le<std::int64_t>(read_file(*files, "/db/writer.chk").value().data());
  }
  nlohmann::json json() const { return nlohmann::json::parse(out.str()); }
  static DatabaseBuilder open(MemoryFileSystem& disk) {
    BuilderOptions options;
    options.chunk_size = 4096;
    options.seed = 2;
    return {disk, "/db", options};
  }
  /// Puts the state of another database into this one.
  void take_state_of(MemoryFileSystem& other) {
    const Path state = "/db/index/scavenging/scavenging.db";
    ASSERT_TRUE(files->make_directories(state.parent_path()));
    ASSERT_TRUE(write_file_durably(*files, state, read_file(other, state).value()));
  }

  std::unique_ptr<MemoryFileSystem> files = std::make_unique<MemoryFileSystem>();
  ManualClock clock;
  SeededRandom random{5};
  std::ostringstream out, err;
  streams::ScavengePoint first;
};

TEST_F(ScavengeCommand, GoesToTheLastPointAndThenHasNothingToDo) {
  EXPECT_EQ(run({"-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["result"], "finished");
  EXPECT_EQ(json()["point"]["eventNumber"], 0);
  EXPECT_EQ(json()["recordsDiscarded"], 29);
  EXPECT_EQ(run({}), tool::kExitDone);
  EXPECT_THAT(out.str(), HasSubstr("nothing to do: scavenge point 0 is reached already"));
  EXPECT_EQ(run({"--point", "0", "-o", "json"}), tool::kExitDone);
  EXPECT_EQ(json()["result"], "nothing to do");
}

TEST_F(ScavengeCommand, WritesAPointOnlyWhenAskedTo) {
  ASSERT_EQ(run({}), tool::kExitDone);
  EXPECT_EQ(run({"--new-point", "--threshold", "3", "-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["point"]["eventNumber"], 1);
  EXPECT_EQ(json()["point"]["threshold"], 3);
  EXPECT_EQ(json()["recordsDiscarded"], 4) << "the 5 that followed the first point, less the last; "
                                              "the one of before is alone in its chunk";
}

TEST_F(ScavengeCommand, CompletesThePointsChunkWhereAServerDiedBehindThePoint) {
  // As after a kill: the point is the last record, its chunk is not completed.
  const auto leave_open = [&](bool with_more) {
    files = std::make_unique<MemoryFileSystem>();
    BuilderOptions options;
    options.chunk_size = 4096;
    LogPosition end;
    {
      DatabaseBuilder builder(*files, "/db", options);
      builder.metadata("a", R"({"$maxCount":1})");
      for (int n = 0; n < 5; ++n) {
        builder.write("a");
      }
      const auto point = builder.point();
      Bytes buffer;
      end = builder.database().transaction_log().read(point.position, buffer).value().next;
    }
    leave_killed_behind_point(*files, "/db", end);
    if (with_more) {
      open(*files).write("a");
    }
  };
  leave_open(false);
  EXPECT_EQ(run({"-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["recordsDiscarded"], 4);
  EXPECT_EQ(log_end(), 4096);

  leave_open(true);
  const auto end = log_end();
  EXPECT_EQ(run({}), tool::kExitRefused) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("records follow the point"));
  EXPECT_EQ(log_end(), end);
}

TEST_F(ScavengeCommand, StopsAndResumes) {
  EXPECT_EQ(run({"--stop-after", "execute:1", "-o", "json"}), tool::kExitStopped) << err.str();
  EXPECT_EQ(json()["result"], "stopped");
  EXPECT_EQ(json()["stage"], "ExecutingChunks");
  EXPECT_EQ(run({"--new-point"}), tool::kExitRefused) << "first the unfinished one";
  EXPECT_THAT(err.str(), HasSubstr("unfinished"));
  EXPECT_EQ(run({"--threads", "2"}), tool::kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("scavenge finished at point 0"));
}

TEST_F(ScavengeCommand, TakesThePointFromAFile) {
  const auto text = nlohmann::json{{"position", first.position.value()},
                                   {"eventNumber", 0},
                                   {"effectiveNow", format_ticks(first.effective_now)},
                                   {"threshold", 1000}}
                        .dump();
  ASSERT_TRUE(write_file_durably(*files, "/point.json", as_bytes(text)));
  EXPECT_EQ(run({"--point-file", "/point.json", "-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["chunksExecuted"], 0) << "the file's threshold counts";
}

TEST_F(ScavengeCommand, TakesAPointFromAFileThatLiesBehindTheEndOfTheLog) {
  ASSERT_EQ(run({}), tool::kExitDone) << err.str();
  const auto end = log_end();
  const auto point = [&](std::int64_t position) {
    const auto text = nlohmann::json{{"position", position},
                                     {"eventNumber", 1},
                                     {"effectiveNow", format_ticks(first.effective_now)},
                                     {"threshold", 0}}
                          .dump();
    ASSERT_TRUE(write_file_durably(*files, "/point.json", as_bytes(text)));
  };
  point(end + (1 << 30));
  EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("belongs to another database"));
  EXPECT_EQ(log_end(), end);
  point(end + 300);
  EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitRefused)
      << "the server would fail: see the last expectation";
  EXPECT_THAT(err.str(), HasSubstr("fails each scavenge of its own with WrongExpectedVersion"));
  EXPECT_THAT(err.str(), HasSubstr("--force"));
  EXPECT_EQ(log_end(), end);
  EXPECT_EQ(run({"--point-file", "/point.json", "--force", "--stop-after", "execute:1"}),
            tool::kExitStopped)
      << err.str();
  EXPECT_THAT(err.str(), HasSubstr("all of it is scavenged"));
  EXPECT_THAT(err.str(), HasSubstr("run the same command again to continue"));
  EXPECT_EQ(run({"--point-file", "/point.json", "-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["point"]["eventNumber"], 1);
  EXPECT_GT(log_end(), end + 300) << "nothing may be written later that lies before the point";
  EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitDone);
  EXPECT_THAT(out.str(), HasSubstr("nothing to do"));
  // As the server, which counts on from the point that its state names.
  EXPECT_EQ(run({"--new-point"}), tool::kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("expected 1, but its last event is 0"));
}

TEST_F(ScavengeCommand, TakesAPointBehindTheEndOfALogWithoutAnyAsItIs) {
  files = std::make_unique<MemoryFileSystem>();
  open(*files).write("a", 5);
  const auto text = nlohmann::json{{"position", log_end() + 300},
                                   {"eventNumber", 3},
                                   {"effectiveNow", "2022-01-05T00:00:00Z"}}
                        .dump();
  ASSERT_TRUE(write_file_durably(*files, "/point.json", as_bytes(text)));
  EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitDone) << err.str();
  EXPECT_THAT(err.str(), HasSubstr("a server that scavenges these files next begins with point 0"));
  EXPECT_EQ(run({"--new-point", "-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["point"]["eventNumber"], 0);
}

TEST_F(ScavengeCommand, RefusesAPointWhoseNumberTheLogHasGivenToAnother) {
  const auto end = log_end();
  const auto text =
      nlohmann::json{
          {"position", end + 300}, {"eventNumber", 0}, {"effectiveNow", "2022-01-05T00:00:00Z"}}
          .dump();
  ASSERT_TRUE(write_file_durably(*files, "/point.json", as_bytes(text)));
  EXPECT_EQ(run({"--point-file", "/point.json", "--force"}), tool::kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("the point belongs to another database"));
  EXPECT_EQ(log_end(), end);
}

TEST_F(ScavengeCommand, WritesNoPointIntoADamagedDatabase) {
  ASSERT_EQ(run({}), tool::kExitDone) << err.str();
  const auto points = [&] { return streams::scavenge_points(open(*files).database())->size(); };
  const auto flip = [&](const Path& path, std::size_t offset) {
    auto bytes = value(read_file(*files, path));
    bytes.at(offset) ^= std::byte{1};
    ok(write_file_durably(*files, path, bytes));
  };
  const auto [chunk, table] = [&] {
    auto builder = open(*files);
    const auto& database = builder.database();
    return std::pair{database.transaction_log().chunks().front()->path(),
                     database.stream_index().tables().back().table->path()};
  }();
  for (const auto& [path, offset] : {std::pair{chunk, 190}, std::pair{table, 130}}) {
    SCOPED_TRACE(path);
    const auto before = points();
    flip(path, static_cast<std::size_t>(offset));
    EXPECT_EQ(run({"--new-point"}), tool::kExitFailed);
    EXPECT_THAT(err.str(), HasSubstr(path.string()));
    EXPECT_THAT(err.str(), HasSubstr("`verger-db verify DIR` lists all damage"));
    flip(path, static_cast<std::size_t>(offset));
    EXPECT_EQ(points(), before);
  }
  EXPECT_EQ(run({"--new-point"}), tool::kExitDone) << err.str();
}

TEST_F(ScavengeCommand, SaysHowToContinueAfterAStopBehindANewPoint) {
  ASSERT_EQ(run({}), tool::kExitDone) << err.str();
  EXPECT_EQ(run({"--new-point", "--stop-after", "accumulate"}), tool::kExitStopped);
  EXPECT_THAT(err.str(), HasSubstr("run the same command again without --new-point to continue"));
  EXPECT_EQ(run({}), tool::kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("scavenge finished at point 1"));
}

TEST_F(ScavengeCommand, LeavesTheStateOfANewerServerAlone) {
  ASSERT_EQ(run({}), tool::kExitDone) << err.str();
  const Path state = "/db/index/scavenging/scavenging.db";
  {
    auto database = sqlite::Database::open(*files, state, {.own_state = false}).value();
    ASSERT_TRUE(
        database.execute("UPDATE Checkpoint SET value = "
                         "replace(value, '\"Done\"', '\"RemovingFromArchive\"')"));
  }
  const auto before = read_file(*files, state).value();
  EXPECT_EQ(run({}), tool::kExitFailed) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("how far the scavenge came is not known"));
  EXPECT_THAT(err.str(), HasSubstr("RemovingFromArchive"));
  EXPECT_EQ(run({"--new-point"}), tool::kExitFailed);
  EXPECT_EQ(streams::scavenge_points(open(*files).database())->size(), 1U);
  EXPECT_EQ(read_file(*files, state).value(), before);
}

TEST_F(ScavengeCommand, RefusesAPointThatIsNotInTheLog) {
  EXPECT_EQ(run({"--point", "7"}), tool::kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("scavenge point 7 is not in the log; it holds 0 to 0"));
  ASSERT_TRUE(write_file_durably(
      *files, "/point.json",
      as_bytes(R"({"position":1,"eventNumber":0,"effectiveNow":"2022-01-05T00:00:00Z"})")));
  EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("there is no scavenge point at log position 1"));
}

TEST_F(ScavengeCommand, SaysWhatIsWrongWithAPointFile) {
  for (const auto* text :
       {"", "{}", "[]", R"({"position":"x"})", "{\"position\":1",
        R"({"position":-1,"eventNumber":0,"effectiveNow":"2022-01-05T00:00:00"})",
        R"({"position":1,"eventNumber":0,"effectiveNow":"soon"})"}) {
    ASSERT_TRUE(write_file_durably(*files, "/point.json", as_bytes(text)));
    EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitUsage) << text;
    EXPECT_THAT(err.str(), HasSubstr("/point.json")) << text;
  }
}

TEST_F(ScavengeCommand, KnowsWrongUsage) {
  EXPECT_EQ(run({"--threads", "5"}), tool::kExitUsage);
  EXPECT_EQ(run({"--throttle-percent", "0"}), tool::kExitUsage);
  EXPECT_EQ(run({"--threads", "2", "--throttle-percent", "50"}), tool::kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("--throttle-percent"));
  EXPECT_EQ(run({"--point", "0", "--new-point"}), tool::kExitUsage);
  EXPECT_EQ(run({"--threshold", "3"}), tool::kExitUsage);
  EXPECT_EQ(run({"--unheard-of"}), tool::kExitUsage);
  EXPECT_EQ(run({"--stop-after", "lunch"}), tool::kExitUsage);
  EXPECT_EQ(run({"--stop-after", "index:0"}), tool::kExitUsage);
}

TEST_F(ScavengeCommand, TakesThreadsAndThrottleTogetherAsTheServerDoes) {
  EXPECT_EQ(run({"--threads", "1", "--throttle-percent", "90"}), tool::kExitDone) << err.str();
  EXPECT_EQ(run({"--threads", "4", "--throttle-percent", "100", "--new-point"}), tool::kExitDone)
      << err.str();
}

TEST_F(ScavengeCommand, ResumesAfterAnyChangeOfThePoints) {
  using Change = std::function<void(DatabaseBuilder&)>;
  const std::vector<Change> changes = {
      [](DatabaseBuilder& builder) { builder.write("$scavengePoints"); },
      [](DatabaseBuilder& builder) { builder.metadata("$scavengePoints", R"({"$tb":1})"); },
      [](DatabaseBuilder& builder) { builder.soft_delete("$scavengePoints"); },
      [](DatabaseBuilder& builder) { builder.hard_delete("$scavengePoints"); }};
  const auto before = files->clone();
  for (const auto& change : changes) {
    files = before->clone();
    ASSERT_EQ(run({"--stop-after", "execute:1"}), tool::kExitStopped) << err.str();
    {
      auto builder = open(*files);
      change(builder);
    }
    EXPECT_EQ(run({"-o", "json"}), tool::kExitDone) << err.str();
    EXPECT_EQ(json()["result"], "finished");
    EXPECT_EQ(json()["point"]["eventNumber"], 0);
  }
}

TEST_F(ScavengeCommand, SaysWhyItCannotStartOnThesePoints) {
  const auto before = files->clone();
  open(*files).write("$scavengePoints");
  EXPECT_EQ(run({}), tool::kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("the last event of $scavengePoints, number 1"));
  files = before->clone();
  open(*files).hard_delete("$scavengePoints");
  EXPECT_EQ(run({}), tool::kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("$scavengePoints is deleted for good"));
}

TEST_F(ScavengeCommand, CountsPointsFromTheFirstInALogThatHasNone) {
  files = std::make_unique<MemoryFileSystem>();
  open(*files).point();
  ASSERT_EQ(run({}), tool::kExitDone) << err.str();
  const auto other = std::exchange(files, std::make_unique<MemoryFileSystem>());
  {
    auto builder = open(*files);
    builder.metadata("a", R"({"$maxCount":1})");
    for (int n = 0; n < 100; ++n) {
      builder.write("a");
    }
  }
  take_state_of(*other);
  EXPECT_EQ(run({}), tool::kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("nothing to do: scavenge point 0 is reached already"));
  EXPECT_EQ(run({"--new-point", "-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["result"], "finished");
  EXPECT_EQ(json()["point"]["eventNumber"], 0);
  EXPECT_GT(json()["point"]["position"], 4096);
}

TEST_F(ScavengeCommand, WritesNoPointBehindAStateThatKnowsOfMore) {
  auto other = files->clone();
  {
    auto builder = open(*other);
    builder.point();
  }
  std::swap(files, other);
  ASSERT_EQ(run({}), tool::kExitDone) << err.str();  // point 1
  std::swap(files, other);
  take_state_of(*other);
  EXPECT_EQ(run({"--new-point"}), tool::kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("'$scavengePoints': expected 1, but its last event is 0"));
  EXPECT_EQ(streams::scavenge_points(open(*files).database())->size(), 1U);
}

TEST_F(ScavengeCommand, SaysHowToGoOnWithADamagedIndex) {
  ASSERT_TRUE(files->make_directories("/db/index"));
  ASSERT_TRUE(write_file_durably(*files, "/db/index/indexmap", as_bytes("damaged")));
  const auto before = files->operation_count();
  EXPECT_EQ(run({}), tool::kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("/db/index/indexmap"));
  EXPECT_THAT(err.str(), HasSubstr("`verger-db index rebuild DIR`"));
  EXPECT_EQ(files->operation_count(), before) << "nothing was changed";
  std::vector<const char*> argv{"verger-db", "index", "rebuild", "/db", "--assume-stopped"};
  tool::ToolContext context{*files, clock, random, null_log(), out, err, false, false};
  ASSERT_EQ(tool::run_program(static_cast<int>(argv.size()), argv.data(), context), tool::kExitDone)
      << err.str();
  EXPECT_EQ(run({"-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["recordsDiscarded"], 29);
}

TEST_F(ScavengeCommand, FindsNothingInALogWithoutPoints) {
  MemoryFileSystem other;
  {
    DatabaseBuilder builder(other, "/db");
    builder.write("a");
  }
  std::vector<const char*> argv{"verger-db", "scavenge", "/db", "--assume-stopped"};
  tool::ToolContext context{other, clock, random, null_log(), out, err, false, false};
  EXPECT_EQ(tool::run_program(static_cast<int>(argv.size()), argv.data(), context),
            tool::kExitDone);
  EXPECT_THAT(out.str(), HasSubstr("the log holds no scavenge point"));
  EXPECT_FALSE(other.exists("/db/index/scavenging").value()) << "nothing was made";
}

}  // namespace
}  // namespace verger::test
