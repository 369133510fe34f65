// `estimate` and `explain` in-process; that they are right is shown in tests/integration/preview.
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/base/memory_file_system.h"
#include "engine/tool/program.h"
#include "tests/support/database/database_builder.h"

namespace verger::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PreviewCommands : public ::testing::Test {
 protected:
  PreviewCommands() : builder(disk, "/db") {
    EXPECT_TRUE(disk.make_directories("/tmp"));
    builder.metadata("counted", R"({"$maxCount":2})");
    builder.write("counted", 5);
    builder.metadata("aged", R"({"$maxAge":3600})");
    builder.write("aged", 2);
    builder.write("free", 3);
    builder.write("deleted", 2);
    builder.hard_delete("deleted");
  }

  int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "verger-db");
    arguments.insert(arguments.end(), {"--tmp-dir", "/tmp"});
    out.str("");
    err.str("");
    ToolContext tool{disk, builder.clock(), builder.random(), null_log(), out, err};
    return run_program(static_cast<int>(arguments.size()), arguments.data(), tool);
  }

  MemoryFileSystem disk;
  test::DatabaseBuilder builder;
  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(PreviewCommands, EstimateCountsByRuleAndStream) {
  builder.point();
  builder.close();
  ASSERT_EQ(run({"estimate", "/db", "-o", "json", "--rate", "100"}), kExitDone) << err.str();
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["removed"]["records"], 5);  // three counted, two deleted
  EXPECT_EQ(json["point"]["eventNumber"], 0);
  EXPECT_FALSE(json["point"]["assumed"].get<bool>());
  EXPECT_EQ(json["time"]["bytesPerSecond"], 104'857'600.0);
  EXPECT_GT(json["diskNeed"]["bytes"], 0);
  std::map<std::string, int> rules;
  for (const auto& rule : json["rules"]) {
    rules[rule["rule"]] = rule["records"];
  }
  EXPECT_EQ(rules["max-count"], 3);
  EXPECT_EQ(rules["deleted-stream"], 2);
  EXPECT_EQ(rules["max-age"], 0);
  EXPECT_EQ(json["streams"][0]["stream"], "counted");
  EXPECT_THAT(*disk.list("/tmp"), IsEmpty());
}

TEST_F(PreviewCommands, EstimateAssumesAPointWhereThereIsNone) {
  builder.close();
  ASSERT_EQ(run({"estimate", "/db", "--now", "2100-01-01T00:00:00Z"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("as if a scavenge point were written now: number 0, time 2100"));
  EXPECT_THAT(out.str(), HasSubstr("records to go  6 "));  // and one of the aged
  EXPECT_THAT(out.str(), HasSubstr("measured by reading and hashing"));
  ASSERT_EQ(run({"estimate", "/db"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("(there is no scavenge point in the log)"));
}

TEST_F(PreviewCommands, AnAssumedPointGivesWhatAWrittenOneDoes) {
  builder.close();
  const auto now = format_ticks(builder.clock().now());
  ASSERT_EQ(run({"estimate", "/db", "-o", "json", "--rate", "1", "--now", now.c_str()}), kExitDone);
  auto assumed = nlohmann::json::parse(out.str());
  builder.open();
  builder.point();
  builder.close();
  ASSERT_EQ(run({"estimate", "/db", "-o", "json", "--rate", "1"}), kExitDone) << err.str();
  auto written = nlohmann::json::parse(out.str());
  for (auto* json : {&assumed, &written}) {
    json->erase("point");
    json->erase("time");
    json->erase("tables");  // the point's own entry
    json->erase("entriesKept");
    json->erase("diskNeed");
    json->erase("spaceSaved");
  }
  EXPECT_EQ(assumed, written);
}

TEST_F(PreviewCommands, ExplainNamesRuleDeciderAndWhatIsMissing) {
  builder.point();
  builder.write("counted");
  builder.close();
  ASSERT_EQ(run({"explain", "/db", "counted@1", "counted@4", "counted@5", "aged@0", "free@2",
                 "deleted@1"}),
            kExitDone)
      << err.str();
  const auto text = out.str();
  EXPECT_THAT(text, HasSubstr("counted@1 goes: the stream keeps 2 events ($maxCount), and its last "
                              "is 4"));
  EXPECT_THAT(text, HasSubstr("decided by  metadata $$counted@0 at log position"));
  EXPECT_THAT(text, HasSubstr("counted@4 stays: the last event of a stream always stays"));
  EXPECT_THAT(text, HasSubstr("counted@5 stays: it lies behind scavenge point 0"));
  EXPECT_THAT(text, HasSubstr("missing     a scavenge point after it"));
  EXPECT_THAT(text, HasSubstr("aged@0 stays: younger than 01:00:00 ($maxAge)"));
  EXPECT_THAT(text, HasSubstr("missing     a scavenge point later than"));
  EXPECT_THAT(text, HasSubstr("free@2 stays: the stream has no metadata"));
  EXPECT_THAT(text, HasSubstr("deleted@1 goes: the stream is deleted for good"));
  EXPECT_THAT(text, HasSubstr("decided by  tombstone deleted@9223372036854775807"));
  EXPECT_THAT(*disk.list("/tmp"), IsEmpty());
}

TEST_F(PreviewCommands, ExplainListsAWholeStream) {
  builder.point(/*threshold=*/1000);
  builder.close();
  ASSERT_EQ(run({"explain", "/db", "counted"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("counted: of 5 events 5 stay"));
  EXPECT_THAT(out.str(), HasSubstr("max-count"));
  ASSERT_EQ(run({"explain", "/db", "counted@0", "-o", "json"}), kExitDone);
  const auto line = nlohmann::json::parse(out.str().substr(out.str().find('\n')));
  EXPECT_TRUE(line["stays"].get<bool>());
  EXPECT_TRUE(line["removedByRules"].get<bool>());
  EXPECT_FALSE(line["chunkExecuted"].get<bool>());
  EXPECT_THAT(line["missing"].get<std::string>(), HasSubstr("does not exceed the threshold 1000"));
  EXPECT_EQ(line["limits"]["maxCount"], 2);
}

TEST_F(PreviewCommands, ExplainSaysWhatItCannotFind) {
  builder.close();
  EXPECT_EQ(run({"explain", "/db", "nobody@3"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("stream 'nobody' has no event 3 in the index"));
  EXPECT_EQ(run({"explain", "/db", "free@0", "--point", "4"}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("scavenge point 4 is not in the log, which holds none"));
  EXPECT_EQ(run({"explain", "/db"}), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("which event?"));
}

TEST_F(PreviewCommands, ExplainContinuesBehindWhatIsNotThere) {
  builder.point();
  builder.close();
  ASSERT_EQ(run({"explain", "/db", "nobody@3", "free@2", "nobody", "free@9"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("stream 'nobody' has no event 3 in the index"));
  EXPECT_THAT(out.str(), HasSubstr("free@2 stays: the stream has no metadata"));
  EXPECT_THAT(err.str(), HasSubstr("3 of 4 are not there"));
  ASSERT_EQ(run({"explain", "/db", "nobody@3", "free@2", "-o", "json"}), kExitFailed);
  std::istringstream lines(out.str());
  std::string line;
  std::getline(lines, line);  // the point
  std::getline(lines, line);
  const auto missing = nlohmann::json::parse(line);
  EXPECT_EQ(missing["stream"], "nobody");
  EXPECT_EQ(missing["eventNumber"], 3);
  EXPECT_THAT(missing["error"].get<std::string>(), HasSubstr("has no event 3"));
  std::getline(lines, line);
  EXPECT_TRUE(nlohmann::json::parse(line)["stays"].get<bool>());
}

TEST_F(PreviewCommands, SayThatChecksumsWereNotCompared) {
  builder.point();
  builder.close();
  ASSERT_EQ(run({"estimate", "/db", "--rate", "1"}), kExitDone);
  EXPECT_THAT(out.str(), HasSubstr("checksums      not compared: `verger-db verify`"));
  ASSERT_EQ(run({"estimate", "/db", "--rate", "1", "-o", "json"}), kExitDone);
  EXPECT_FALSE(nlohmann::json::parse(out.str())["checksumsCompared"].get<bool>());
}

TEST_F(PreviewCommands, ATimeThatIsNoneIsWrongUsage) {
  builder.close();
  EXPECT_EQ(run({"estimate", "/db", "--now", "yesterday"}), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("yesterday"));
}

TEST_F(PreviewCommands, ASignalAtAnyWriteEndsThemWithoutATrace) {
  builder.point();
  builder.close();
  for (const auto& arguments : {std::vector<const char*>{"estimate", "/db", "--rate", "1"},
                                std::vector<const char*>{"explain", "/db", "free"}}) {
    SCOPED_TRACE(arguments.front());
    int stopped = 0;
    for (std::uint64_t nth = 0;; ++nth) {
      SCOPED_TRACE(nth);
      bool raised = false;
      disk.reset_count();
      disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.number == nth) {
          raised = true;
          std::raise(SIGINT);
        }
        return std::nullopt;
      });
      const auto code = run(arguments);
      disk.set_fault_hook({});
      EXPECT_THAT(*disk.list("/tmp"), IsEmpty());
      if (code == kExitStopped) {
        EXPECT_THAT(err.str(), HasSubstr("nothing was changed"));
        ++stopped;
      } else {  // it came when all was done but the cleaning up
        EXPECT_EQ(code, kExitDone) << err.str();
      }
      if (!raised) {
        break;
      }
    }
    EXPECT_GT(stopped, 5);
  }
}

}  // namespace
}  // namespace verger::tool
