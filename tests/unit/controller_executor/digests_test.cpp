// Digests read whole logs: when, how gently, and no more of them than is needed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using test::ControllerHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Open or closed as the test says.
class DigestHours final : public WorkingHours {
 public:
  std::optional<planner::Hours> hours(const ClusterConfig&, std::string_view,
                                      Ticks) const override {
    return planner::Hours{open, Ticks(0), {}, "deny window \"office hours\""};
  }
  bool open = true;
};

class Digests : public ::testing::Test {
 protected:
  Digests() {
    h_.cluster.digest_takes = seconds(20);
    h_.options.poll_interval = milliseconds(500);
    h_.make_hours = [this](Journal&, ControllerEpoch) { return &hours_; };
    h_.boot();
    h_.register_cluster();
  }
  bool computes(const std::string& node) {
    return h_.run_until([&] { return h_.cluster.node(node).digest_since.has_value(); });
  }
  void pass(milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  StepState step(const std::string& run, const std::string& id) {
    return h_.state(run).steps.at(id);
  }
  DigestHours hours_;
  ControllerHarness h_;
};

TEST_F(Digests, AreComputedOnOneNodeAfterTheOtherAtThePolicysThrottle) {
  auto policy = ControllerHarness::quick_policy();
  scavenge_of(policy).throttle_percent = 30;
  const auto run = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(h_.cluster.most_digests, 1U);
  // The readable digest is only of the node whose digest was recorded before: where records are
  // the same, that is too.
  EXPECT_THAT(h_.cluster.node("n1").digest_requests, ElementsAre("readable 30"));
  EXPECT_THAT(h_.cluster.node("n2").digest_requests, ElementsAre("records 30"));
  EXPECT_THAT(h_.cluster.node("n3").digest_requests, ElementsAre("records 30"));
  const auto compared = json(*step(run, "compare-digests").result);
  EXPECT_EQ(compared["readable_equal"], true);
  EXPECT_EQ(compared["readable_unchanged"], true);
  EXPECT_EQ(compared["nodes"]["n3"]["readable"], "rr");
}

TEST_F(Digests, OfWhatCanBeReadAreComputedEverywhereOnlyWhereRecordsDiffer) {
  h_.cluster.node("n3").digest = "bb";
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_THAT(h_.cluster.node("n2").digest_requests, ElementsAre("records 100", "readable 100"));
  EXPECT_THAT(h_.cluster.node("n3").digest_requests, ElementsAre("records 100", "readable 100"));
  EXPECT_EQ(json(*step(run, "compare-digests").result)["first_difference"]["chunk"], 1);
}

TEST_F(Digests, AreNotBegunInPeakHours) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] { return step(run, "scavenge-n1").status == StepStatus::kDone; }));
  hours_.open = false;
  pass(minutes(5));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_THAT(h_.cluster.node("n2").digest_requests, IsEmpty());
  hours_.open = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
}

TEST_F(Digests, StopWhenHoursCloseAndGoOnWhereTheyWere) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(computes("n3"));
  pass(seconds(15));
  hours_.open = false;
  pass(seconds(1));
  EXPECT_FALSE(h_.cluster.node("n3").digest_since.has_value());
  EXPECT_THAT(h_.cluster.node("n3").digest_requests, Contains("stop keep"));
  pass(minutes(10));
  EXPECT_EQ(h_.state(run).status, RunStatus::kWaiting);
  EXPECT_THAT(h_.state(run).reason, HasSubstr("office hours"));
  EXPECT_FALSE(h_.cluster.node("n3").digest_since.has_value());
  EXPECT_GE(h_.cluster.node("n3").digest_done, seconds(14)) << "it was kept";
  hours_.open = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_EQ(step(run, "digest-n3").attempt, 1) << "being stopped costs no attempt";
}

TEST_F(Digests, OfTheWitnessAreStoppedByAPauseWithinASecond) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(computes("n1"));
  ASSERT_EQ(step(run, "record-n1").status, StepStatus::kActing);
  ASSERT_TRUE(h_.executor->pause(run, "me", "peak").has_value());
  pass(seconds(1));
  EXPECT_FALSE(h_.cluster.node("n1").digest_since.has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(run).status == RunStatus::kPaused; }));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_TRUE(json(*step(run, "record-n1").result)["recorded"]);
}

TEST_F(Digests, AreStoppedByACancelWithinASecondAndForgotten) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(computes("n3"));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "not now").has_value());
  pass(seconds(1));
  EXPECT_FALSE(h_.cluster.node("n3").digest_since.has_value());
  EXPECT_THAT(h_.cluster.node("n3").digest_requests, Contains("stop"));
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kCancelled);
}

TEST_F(Digests, TellHowFarTheyAre) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(computes("n3"));
  pass(seconds(10));
  const auto progress = json(*step(run, "digest-n3").progress);
  EXPECT_EQ(progress["phase"], "digest of n3: reading the log");
  EXPECT_EQ(progress["unit"], "bytes");
  EXPECT_GT(progress["done"], 4'000);
  EXPECT_EQ(progress["total"], 20'000);
  EXPECT_GT(step(run, "digest-n3").phase.done, 0);
}

TEST_F(Digests, WorkAsGentlyAsTheRunSaysFromThenOn) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(computes("n3"));
  const api::Throttle gentle{.percent = 7, .bytes_per_second = 5'000'000};
  ASSERT_TRUE(h_.executor->throttle(run, "me", gentle).has_value());
  const auto throttles = [this](const std::string& node) {
    std::vector<api::Throttle> out;
    for (const auto& [id, operation] : h_.cluster.node(node).operations) {
      if (operation.status.kind == "digest") {
        out.push_back(operation.status.throttle.value());
      }
    }
    return out;
  };
  pass(seconds(3));
  EXPECT_THAT(throttles("n3"), ElementsAre(gentle)) << "the one under way";
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_THAT(throttles("n1"), Contains(gentle)) << "and a later one";
  EXPECT_FALSE(h_.executor->throttle(run, "me", gentle).has_value()) << "it has ended";
}

TEST_F(Digests, OfAnAgentThatDoesNotKnowThemAreWaitedForAndItIsNamed) {
  h_.cluster.knows_digests = false;
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] {
    return step(run, "record-n1").reason.contains("upgrade verger-agent on n1") ||
           step(run, "digest-n3").reason.contains("upgrade verger-agent on n3");
  }));
  pass(minutes(5));
  EXPECT_EQ(h_.state(run).status, RunStatus::kRunning) << h_.state(run).reason;
  h_.cluster.knows_digests = true;
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
}

TEST_F(Digests, ThatFailCostNoAttempt) {
  h_.cluster.digest_failures = 5;
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.digest_failures == 0; }));
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
}

TEST_F(Digests, WaitForAFollowerThatLags) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(computes("n3"));
  const auto set_ahead = [this](std::int64_t writer) {
    h_.cluster.node("n1").writer = writer;
    h_.cluster.node("n2").writer = writer;
  };
  set_ahead(200'000'000);
  ASSERT_TRUE(h_.run_until([&] { return step(run, "digest-n3").status == StepStatus::kDone; }));
  pass(minutes(2));
  EXPECT_EQ(step(run, "digest-n1").status, StepStatus::kWaiting);
  EXPECT_THAT(step(run, "digest-n1").reason, HasSubstr("n3"));
  set_ahead(10'000);
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
}

TEST_F(Digests, NoLongerWaitForAFollowerThatIsLeftOut) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] { return h_.cluster.node("n2").running.has_value(); }));
  h_.cluster.node("n1").writer = 200'000'000;
  h_.cluster.node("n2").writer = 200'000'000;
  ASSERT_TRUE(h_.run_until([&] { return step(run, "record-n1").status == StepStatus::kWaiting; }));
  EXPECT_THAT(step(run, "record-n1").reason, HasSubstr("n3"));
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n3", "me", "it lags")).has_value());
  pass(seconds(2));  // a few looks
  EXPECT_EQ(step(run, "record-n1").status, StepStatus::kActing);
  EXPECT_EQ(h_.state(run).status, RunStatus::kRunning);
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_FALSE(h_.cluster.node("n3").last_finished.has_value());
}

TEST_F(Digests, AreNotAskedOfANodeThatIsLeftOut) {
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(computes("n3"));
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n3", "me", "its disk")).has_value());
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
  EXPECT_FALSE(h_.cluster.node("n3").digest_since.has_value());
  const auto compared = json(*step(run, "compare-digests").result);
  EXPECT_TRUE(compared["nodes"].contains("n2"));
  EXPECT_FALSE(compared["nodes"].contains("n3"));
}

}  // namespace
}  // namespace verger::controller
