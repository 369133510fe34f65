// A node that a person leaves out of a run: what becomes of its work, and of the nodes after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/intents_fixture.h"

namespace verger::controller {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Intents;

TEST_F(Intents, ASkippedNodeIsLeftOutAndTheRunContinues) {
  const auto run = start();
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").last_finished.has_value(); }));
  h_.cluster.node("n3").up = false;
  h_.cluster.node("n3").agent_up = false;
  ASSERT_TRUE(reaches(run, RunStatus::kWaiting));
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n3", "me", "disk is broken")).has_value());
  // Without n3 there is no margin for n1: the run waits on, and says so.
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).steps.at("lower-n1").status == StepStatus::kWaiting; }));
  EXPECT_THAT(h_.state(run).reason, HasSubstr("1 voter is up, 2 are needed"));
  h_.cluster.node("n3").up = true;
  h_.cluster.node("n3").agent_up = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("n3"));
  EXPECT_FALSE(h_.cluster.node("n3").last_finished.has_value());
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n3").status, StepStatus::kSkipped);
}

TEST_F(Intents, ANodeThatIsSkippedWhileItWorksIsStopped) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n3"));
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n3", "me", "")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone);
  EXPECT_FALSE(h_.cluster.node("n3").running.has_value());
  EXPECT_FALSE(h_.cluster.node("n3").last_finished.has_value());
}

/// n2 scavenges, its agent dies, and a person leaves it out.
class SkippedNode : public Intents {
 protected:
  void skip_with_dead_agent() {
    run_ = start();
    ASSERT_TRUE(scavenges("n2"));
    id_ = h_.cluster.node("n2").running->id;
    h_.cluster.node("n2").agent_up = false;
    h_.cluster.node("n2").running->ends = Monotonic::max();
    pass(std::chrono::seconds(5));
    const auto skipped = h_.wait_for(h_.executor->skip_node(run_, "n2", "me", "its agent is gone"));
    ASSERT_TRUE(skipped.has_value()) << skipped.error().message;
    reported_ = *skipped;
  }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  std::string gates() { return h_.state(run_).steps.at("scavenge-n3").gates; }
  std::string run_;
  std::string id_;
  std::string reported_;
};

TEST_F(SkippedNode, HoldsTheOthersUpWhileItsScavengeIsSeenToRun) {
  ASSERT_NO_FATAL_FAILURE(skip_with_dead_agent());
  EXPECT_THAT(reported_, AllOf(HasSubstr("n2 still scavenges (" + id_ + ")"), HasSubstr("n3 waits"),
                               HasSubstr("--force")));
  pass(std::chrono::minutes(10));
  EXPECT_EQ(h_.cluster.node("n3").scavenge_starts, 0) << "n2 still scavenges";
  EXPECT_EQ(h_.state(run_).status, RunStatus::kWaiting);
  EXPECT_THAT(gates(), AllOf(HasSubstr("no-other-work"), HasSubstr(id_)));
  h_.cluster.stop_by_hand("n2");
  ASSERT_TRUE(h_.run_to_end(run_));
  EXPECT_EQ(h_.state(run_).status, RunStatus::kDone) << h_.state(run_).reason;
  EXPECT_EQ(h_.cluster.node("n3").finished.at(0), 1);
}

TEST_F(SkippedNode, NoLongerHoldsThemUpWhereAPersonSaysSo) {
  ASSERT_NO_FATAL_FAILURE(skip_with_dead_agent());
  pass(std::chrono::minutes(2));
  ASSERT_EQ(h_.cluster.node("n3").scavenge_starts, 0);
  const auto forced =
      h_.wait_for(h_.executor->skip_node(run_, "n2", "me", "it is only a replica", true));
  ASSERT_TRUE(forced.has_value());
  EXPECT_EQ(*forced, "");
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").scavenge_starts == 1; },
                           std::chrono::minutes(1)));
  EXPECT_TRUE(h_.cluster.node("n2").running.has_value());
}

TEST_F(SkippedNode, HoldsThemUpWhileItCannotBeSeen) {
  ASSERT_NO_FATAL_FAILURE(skip_with_dead_agent());
  h_.cluster.node("n2").up = false;
  pass(std::chrono::minutes(10));
  h_.cluster.node("n2").ghost = true;  // the quorum is not what n3 waits for
  pass(std::chrono::minutes(10));
  EXPECT_EQ(h_.cluster.node("n3").scavenge_starts, 0);
  EXPECT_THAT(gates(), AllOf(HasSubstr("skipped-node-unseen"), HasSubstr("scavenge-n2")));
  h_.crash();
  h_.boot();
  pass(std::chrono::minutes(2));
  EXPECT_EQ(h_.cluster.node("n3").scavenge_starts, 0) << "a restart knows it too";
  // Its server was started again: the scavenge ended with the old process.
  h_.cluster.restart("n2");
  h_.cluster.node("n2").up = true;
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").scavenge_starts == 1; },
                           std::chrono::minutes(3)));
  EXPECT_THAT(h_.events(run_), Contains("skipped-node-idle"));
}

TEST_F(SkippedNode, MayStillBeginWhatItWasAskedUntilItsPermitIsOver) {
  run_ = start();
  ASSERT_TRUE(scavenges("n2"));
  h_.cluster.node("n2").agent_up = false;
  h_.cluster.stop_by_hand("n2");
  h_.run_until([] { return false; }, std::chrono::seconds(1));
  const auto begun = h_.time.monotonic();
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run_, "n2", "me", "")).has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n3").scavenge_starts == 1; },
                           std::chrono::minutes(3)));
  EXPECT_GE(h_.time.monotonic() - begun, h_.options.permit_valid_for);
}

}  // namespace
}  // namespace verger::controller
