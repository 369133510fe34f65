#include "nodeagent/operations/digests.h"

#include <gtest/gtest.h>

#include "tests/support/cluster/sim_world.h"
#include "tests/unit/nodeagent_operations/digested_node.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DigestsOfANode : public ::testing::Test {
 protected:
  DigestsOfANode() : host_(world_.add_host("n1")) {
    host_.boot();
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{}, milliseconds(100));
    tasks_ = std::make_unique<http::TaskGroup>(host_.executor(), null_log(), "digests");
    digests_ = std::make_unique<Digests>(*runner_, *tasks_, host_.clock(), host_.disk(), "/agent");
  }
  Result<api::DigestAnswer> ask(DigestQuery query = {.point = 3}) {
    return digests_->ask(node_, query);
  }
  bool has_it() {
    const auto answer = ask();
    return answer && answer->digest.has_value();
  }
  void pass(milliseconds time) { world_.run_for(time); }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  DigestScript script_;
  DigestedNode node_{script_};
  std::unique_ptr<node::JobRunner> runner_;
  std::unique_ptr<http::TaskGroup> tasks_;
  std::unique_ptr<Digests> digests_;
};

TEST_F(DigestsOfANode, ReportProgressWhileTheyAreComputed) {
  EXPECT_FALSE(has_it());
  pass(seconds(2));
  const auto on_the_way = ask();
  ASSERT_TRUE(on_the_way);
  EXPECT_GT(on_the_way->bytes_done, 100);
  EXPECT_EQ(on_the_way->bytes_total, 500);
  pass(seconds(4));
  EXPECT_TRUE(has_it());
  EXPECT_EQ(script_.made, 1);
  EXPECT_EQ(script_.options.at(0).temporary_directory, "/agent");
  EXPECT_TRUE(script_.options.at(0).readable);
}

TEST_F(DigestsOfANode, StopWithinASecondAndGoOnWhereTheyWere) {
  EXPECT_FALSE(has_it());
  pass(seconds(3));
  digests_->stop(3, /*keep=*/true);
  pass(seconds(1));
  const auto steps = script_.steps;
  pass(std::chrono::hours(8));
  EXPECT_EQ(script_.steps, steps) << "nothing is read";
  EXPECT_FALSE(has_it());
  pass(seconds(3));
  EXPECT_TRUE(has_it());
  EXPECT_EQ(script_.made, 1);
  EXPECT_EQ(script_.steps, script_.needed);
}

TEST_F(DigestsOfANode, StartOverAfterTheyWereGivenUp) {
  EXPECT_FALSE(has_it());
  pass(seconds(1));
  digests_->stop(3, /*keep=*/false);
  pass(seconds(1));
  const auto steps = script_.steps;
  pass(seconds(30));
  EXPECT_EQ(script_.steps, steps);
  EXPECT_FALSE(has_it());
  EXPECT_EQ(script_.made, 2);
}

TEST_F(DigestsOfANode, StopByThemselvesWithoutRequests) {
  script_.needed = 100'000;
  EXPECT_FALSE(has_it());
  pass(seconds(90));
  const auto steps = script_.steps;
  EXPECT_LT(steps, 650) << "a minute and some";
  pass(seconds(90));
  EXPECT_EQ(script_.steps, steps);
  EXPECT_FALSE(has_it());
  pass(seconds(10));
  EXPECT_GT(script_.steps, steps);
  EXPECT_EQ(script_.made, 1);
}

TEST_F(DigestsOfANode, RestAsThePolicysThrottleSays) {
  script_.needed = 100'000;
  ASSERT_TRUE(ask({.point = 3, .throttle_percent = 20}));
  pass(seconds(50));
  EXPECT_GT(script_.steps, 80);
  EXPECT_LT(script_.steps, 130) << "a fifth of 500";
}

TEST_F(DigestsOfANode, AreKeptWhileTheLogGrowsAndNotWhenAChunkIsRewritten) {
  EXPECT_FALSE(has_it());
  pass(seconds(6));
  EXPECT_TRUE(has_it());
  node_.inventory.files.push_back({.start = 3, .bytes = 1'000});
  node_.inventory.files[2].bytes = 1'000;  // the point is in it
  EXPECT_TRUE(has_it());
  node_.inventory.files[1].bytes = 500;
  EXPECT_FALSE(has_it());
  pass(seconds(6));
  EXPECT_TRUE(has_it());
  node_.instance = "i2";
  EXPECT_FALSE(has_it());
  EXPECT_EQ(script_.made, 3);
}

TEST_F(DigestsOfANode, OfRecordsAloneAreNoAnswerToAQuestionForMore) {
  ASSERT_TRUE(ask({.point = 3, .readable = false}));
  pass(seconds(6));
  const auto records = ask({.point = 3, .readable = false});
  ASSERT_TRUE(records && records->digest);
  EXPECT_EQ(records->digest->readable, "");
  EXPECT_EQ(records->digest->readable_events, -1);
  EXPECT_FALSE(script_.options.at(0).readable);
  EXPECT_FALSE(has_it());
  pass(seconds(6));
  EXPECT_TRUE(has_it());
  EXPECT_TRUE(ask({.point = 3, .readable = false})->digest) << "more than was requested";
  EXPECT_EQ(script_.made, 2);
}

TEST_F(DigestsOfANode, AreNotTriedAgainAndAgainWhereTheyFail) {
  script_.fails = Error{Errc::kNoSpace, "/agent: needs room"};
  ASSERT_TRUE(ask());
  pass(seconds(1));
  for (int i = 0; i < 20; ++i) {
    const auto answer = ask();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Errc::kNoSpace);
    pass(seconds(1));
  }
  EXPECT_EQ(script_.made, 1);
  script_.fails.reset();
  pass(std::chrono::minutes(5));
  ASSERT_TRUE(ask());
  pass(seconds(6));
  EXPECT_TRUE(has_it());
}

}  // namespace
}  // namespace verger::agent
