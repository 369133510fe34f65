// What counts as the duration of a step, of which later runs are estimated.
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/intents_fixture.h"

namespace verger::controller {
namespace {

using testing::Intents;

TEST_F(Intents, ADurationIsTimeAtWorkWithoutPausesOrTimesInWhichItWasNotObserved) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.run_until([] { return false; }, std::chrono::seconds(10));
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  h_.run_until([] { return false; }, std::chrono::minutes(50));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(scavenges("n3"));
  h_.crash();
  h_.time.jump(std::chrono::minutes(30));
  h_.boot();
  ASSERT_TRUE(scavenges("n1"));
  h_.cluster.node("n1").running->ends = h_.time.monotonic() + std::chrono::hours(1);
  h_.cluster.node("n1").up = false;  // away, with its agent
  h_.cluster.node("n1").agent_up = false;
  h_.run_until([] { return false; }, std::chrono::minutes(20));
  h_.cluster.node("n1").up = true;
  h_.cluster.node("n1").agent_up = true;
  h_.cluster.node("n1").running->ends = h_.time.monotonic() + std::chrono::seconds(10);
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
  std::map<std::string, std::int64_t> took;
  for (const auto& past : h_.executor->runs("prod").front()->durations) {
    if (past.kind == "scavenge") {
      took[past.node] = past.duration_ms / 1000;
    }
  }
  ASSERT_EQ(took.size(), 3U);
  for (const auto& [node, seconds] : took) {
    EXPECT_GE(seconds, 5) << node;
    EXPECT_LE(seconds, 60) << node;
  }
}

TEST_F(Intents, ADurationOfWhatAnotherPartyHadBegunIsNone) {
  h_.cluster.points.push_back(1'000);
  h_.cluster.node("n2").unfinished = 0;
  const auto run = start();
  ASSERT_TRUE(h_.run_to_end(run));
  ASSERT_EQ(h_.state(run).steps.at("finish-n2").status, StepStatus::kDone);
  int of_n2 = 0;
  for (const auto& past : h_.executor->runs("prod").front()->durations) {
    of_n2 += past.kind == "scavenge" && past.node == "n2" ? 1 : 0;
  }
  EXPECT_EQ(of_n2, 1) << "the one to the new point";
}

}  // namespace
}  // namespace verger::controller
