#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AutoScavengeOfServers : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.cluster.scavenge_takes = std::chrono::seconds(20);
    for (auto& node : h_.cluster.nodes) {
      node.version = "24.10.0";
    }
    h_.cluster.auto_scavenge = "Waiting";
    h_.boot();
    h_.register_cluster();
  }
  static planner::Policy policy() {
    auto out = ControllerHarness::quick_policy();
    scavenge_of(out).auto_scavenge = planner::AutoScavengeRule::kPause;
    return out;
  }
  void expect_left_as_it_was() {
    EXPECT_EQ(h_.cluster.auto_scavenge, "Waiting");
    EXPECT_THAT(h_.cluster.auto_scavenge_asked, ElementsAre("pause", "resume"));
  }
  ControllerHarness h_;
};

TEST_F(AutoScavengeOfServers, RefusesThePlanWhereThePolicyDoesNotPauseIt) {
  const auto made =
      h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made.has_value());
  ASSERT_FALSE(made->has_value());
  EXPECT_EQ(made->error().refusals.front().code, "auto-scavenge-active");
}

TEST_F(AutoScavengeOfServers, IsPausedForTheRunAndResumedAfterIt) {
  const auto run = h_.start_scavenge(policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  EXPECT_EQ(h_.cluster.auto_scavenge, "Paused");
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  expect_left_as_it_was();
}

TEST_F(AutoScavengeOfServers, IsResumedAfterARunThatWasCancelled) {
  const auto run = h_.start_scavenge(policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
  expect_left_as_it_was();
}

TEST_F(AutoScavengeOfServers, IsResumedAfterARunThatFailed) {
  h_.cluster.node("n2").next_ends.assign(20, "Errored");
  const auto run = h_.start_scavenge(policy());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  expect_left_as_it_was();
}

TEST_F(AutoScavengeOfServers, IsResumedWhereverTheControllerDiesInARunThatIsCancelled) {
  for (int nth = 1; nth < 12; ++nth) {
    SCOPED_TRACE(nth);
    h_.cluster.auto_scavenge_asked.clear();
    const auto run = h_.start_scavenge(policy());
    ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
    ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
    const auto first = h_.journal->last_sequence()->value();
    ASSERT_TRUE(h_.run_until([&] {
      return h_.journal->last_sequence()->value() >= first + nth || has_ended(h_.state(run).status);
    }));
    h_.crash();
    h_.boot();
    ASSERT_TRUE(h_.run_to_end(run));
    EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled) << h_.state(run).reason;
    EXPECT_EQ(h_.cluster.auto_scavenge, "Waiting");
  }
}

TEST_F(AutoScavengeOfServers, IsLeftPausedWhereAnotherClientHadPausedIt) {
  h_.cluster.auto_scavenge = "Paused";
  const auto run = h_.start_scavenge(policy());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(h_.cluster.auto_scavenge, "Paused");
  EXPECT_THAT(h_.cluster.auto_scavenge_asked, IsEmpty());
}

TEST_F(AutoScavengeOfServers, ThatCannotBeResumedEndsTheRunAsFailedWithTheCommand) {
  const auto run = h_.start_scavenge(policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  h_.cluster.fate = [](const test::FakeNode&, const http::Request& request) {
    return request.target == "/auto-scavenge/resume" ? std::optional(test::Fate::kLost)
                                                     : std::nullopt;
  };
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(2)));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(run).reason, ::testing::HasSubstr("resume-auto-scavenge"));
}

}  // namespace
}  // namespace verger::controller
