// What a scavenge would remove, counted by the agent in the files of a running node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scavenge/run.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"

namespace verger::agent {
namespace {

using std::chrono::minutes;
using ::testing::HasSubstr;

class AScavengeEstimate : public BackupFixture {
 protected:
  /// Streams of 20 events, of which 2 are kept.
  static void write_limited(test::DatabaseBuilder& builder) {
    for (int stream = 0; stream < 10; ++stream) {
      const auto name = fmt::format("s{}", stream);
      builder.write(name, 20, 400);
      builder.metadata(name, R"({"$maxCount":2})");
    }
  }
  void fill_with_limits() {
    test::DatabaseBuilder builder(host_.disk(), "/limited");
    write_limited(builder);
    builder.close();
    node_.at("/limited");
  }
  /// Of the same database with a point behind everything.
  static std::int64_t removed_by_a_scavenge() {
    MemoryFileSystem files;
    test::ScavengeRun run;
    {
      test::DatabaseBuilder builder(files, "/limited");
      write_limited(builder);
      run.chunk_size = builder.options().chunk_size;
      run.max_mem_table_size = builder.options().max_mem_table_size;
      run.point = builder.point();
      builder.close();
    }
    const auto done = value(test::run_scavenge(files, "/limited", run));
    return static_cast<std::int64_t>(done.progress.records_discarded);
  }
  json estimate(const std::string& query = "") {
    EXPECT_EQ(ask("GET", "/agent/v1/scavenge/estimate" + query), "200") << answer_;
    return answer_;
  }
  std::string refused(const std::string& query = "") {
    EXPECT_EQ(ask("GET", "/agent/v1/scavenge/estimate" + query), "503 unavailable") << answer_;
    return answer_.value("detail", "");
  }
  bool scratch_is_empty() {
    return !value(host_.disk().exists("/agent/estimate")) ||
           value(host_.disk().list("/agent/estimate")).empty();
  }
};

TEST_F(AScavengeEstimate, IsWhatAScavengeThenRemoves) {
  fill_with_limits();
  const auto counted = estimate();
  EXPECT_GT(counted.value("removedRecords", 0), 100) << counted;
  EXPECT_GT(counted.value("removedBytes", 0), 40'000);
  EXPECT_FALSE(counted.value("atLeast", false));
  EXPECT_TRUE(scratch_is_empty());
  EXPECT_EQ(counted.value("removedRecords", std::int64_t{-1}), removed_by_a_scavenge());
}

TEST_F(AScavengeEstimate, EndsOnceItIsEnough) {
  fill_with_limits();
  const auto all = estimate();
  const auto some = estimate("?enough=1000");
  EXPECT_TRUE(some.value("atLeast", false)) << some;
  EXPECT_GE(some.value("removedBytes", 0), 1'000);
  EXPECT_LT(some.value("removedBytes", 0), all.value("removedBytes", 0));
}

TEST_F(AScavengeEstimate, OfADatabaseWithoutLimitsIsNothing) {
  EXPECT_EQ(estimate().value("removedRecords", -1), 0);
}

TEST_F(AScavengeEstimate, TakesHalfAMinuteAtMostAndLeavesNothingBehind) {
  fill_with_limits();
  // A step takes so long that the first few are all that there is time for.
  runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 1},
                                                    std::chrono::milliseconds(4'000));
  open_agent();
  EXPECT_THAT(refused(), HasSubstr("takes longer than 25 s"));
  EXPECT_TRUE(scratch_is_empty());
}

TEST_F(AScavengeEstimate, IsKeptForSomeMinutes) {
  fill_with_limits();
  const auto first = estimate();
  node_.at("/db");  // where nothing would go
  EXPECT_EQ(estimate(), first);
  world_.run_for(minutes(11));
  EXPECT_EQ(estimate().value("removedRecords", -1), 0);
}

TEST_F(AScavengeEstimate, NeedsTheNodeAndNoScavenge) {
  node_runs_ = false;
  EXPECT_THAT(refused(), HasSubstr("stopped"));
}

TEST_F(AScavengeEstimate, SaysWhatItDoesNotUnderstand) {
  for (const auto* query : {"?threshold=x", "?threshold=-2", "?enough=0", "?enough=many"}) {
    EXPECT_EQ(ask("GET", std::string("/agent/v1/scavenge/estimate") + query), "400 bad_request");
  }
}

}  // namespace
}  // namespace verger::agent
