// `verger-db scavenge` as a person calls it, on a disk in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/tool/program.h"
#include "tests/support/database/database_builder.h"
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
    DatabaseBuilder builder(files, "/db", options);
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
    tool::ToolContext context{files, clock, random, null_log(), out, err, false, false};
    return tool::run_program(static_cast<int>(argv.size()), argv.data(), context);
  }
  nlohmann::json json() const { return nlohmann::json::parse(out.str()); }

  MemoryFileSystem files;
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

TEST_F(ScavengeCommand, StopsAndGoesOn) {
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
  ASSERT_TRUE(write_file_durably(files, "/point.json", as_bytes(text)));
  EXPECT_EQ(run({"--point-file", "/point.json", "-o", "json"}), tool::kExitDone) << err.str();
  EXPECT_EQ(json()["chunksExecuted"], 0) << "the file's threshold counts";
}

TEST_F(ScavengeCommand, RefusesAPointThatIsNotInTheLog) {
  EXPECT_EQ(run({"--point", "7"}), tool::kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("scavenge point 7 is not in the log; it holds 0 to 0"));
  ASSERT_TRUE(write_file_durably(
      files, "/point.json",
      as_bytes(R"({"position":1,"eventNumber":0,"effectiveNow":"2022-01-05T00:00:00Z"})")));
  EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("there is no scavenge point at log position 1"));
}

TEST_F(ScavengeCommand, SaysWhatIsWrongWithAPointFile) {
  for (const auto* text :
       {"", "{}", "[]", R"({"position":"x"})", "{\"position\":1",
        R"({"position":-1,"eventNumber":0,"effectiveNow":"2022-01-05T00:00:00"})",
        R"({"position":1,"eventNumber":0,"effectiveNow":"soon"})"}) {
    ASSERT_TRUE(write_file_durably(files, "/point.json", as_bytes(text)));
    EXPECT_EQ(run({"--point-file", "/point.json"}), tool::kExitFailed) << text;
    EXPECT_THAT(err.str(), HasSubstr("/point.json")) << text;
  }
}

TEST_F(ScavengeCommand, KnowsWrongUsage) {
  EXPECT_EQ(run({"--threads", "5"}), tool::kExitUsage);
  EXPECT_EQ(run({"--throttle-percent", "0"}), tool::kExitUsage);
  EXPECT_EQ(run({"--threads", "2", "--throttle-percent", "50"}), tool::kExitUsage);
  EXPECT_EQ(run({"--point", "0", "--new-point"}), tool::kExitUsage);
  EXPECT_EQ(run({"--threshold", "3"}), tool::kExitUsage);
  EXPECT_EQ(run({"--unheard-of"}), tool::kExitUsage);
  EXPECT_EQ(run({"--stop-after", "lunch"}), tool::kExitUsage);
  EXPECT_EQ(run({"--stop-after", "index:0"}), tool::kExitUsage);
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
