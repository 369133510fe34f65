// A message to a node that is lost or arrives late, when the run has decided otherwise meanwhile.
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/intents_fixture.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using test::Fate;
using testing::Intents;

/// The first message to n2 that begins an operation; the node never gets it, nor the run an answer.
http::Request first_operation_of_n2_that_gets_lost(ControllerHarness& h) {
  std::optional<http::Request> late;
  h.cluster.fate = [&late](const test::FakeNode& node,
                           const http::Request& request) -> std::optional<Fate> {
    if (late || node.name != "n2" || request.target != "/agent/v1/operations") {
      return std::nullopt;
    }
    late = request;
    return Fate::kLost;
  };
  EXPECT_TRUE(h.run_until([&late] { return late.has_value(); }));
  h.cluster.fate = nullptr;
  return late.value();
}

Result<http::Response> arrive_at_n2(ControllerHarness& h, const http::Request& late) {
  return h.wait_for(h.cluster.send({.tls = false, .host = "10.0.0.2", .port = 2114}, late,
                                   std::chrono::seconds(2)));
}

TEST_F(Intents, AMessageOfAnIntentThatWasGivenUpFindsNoPermit) {
  const auto run = start();
  const auto late = first_operation_of_n2_that_gets_lost(h_);
  ASSERT_TRUE(h_.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  ASSERT_TRUE(scavenges("n2"));
  EXPECT_EQ(h_.state(run).steps.at("scavenge-n2").attempt, 1) << "what was never sent costs none";

  const auto answer = arrive_at_n2(h_, late);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 409) << answer->body;
  ASSERT_TRUE(h_.run_to_end(run));
  expect_done_once(run);
}

TEST_F(Intents, AMessageToANodeThatWasSkippedMeanwhileFindsNoPermit) {
  const auto run = start();
  const auto late = first_operation_of_n2_that_gets_lost(h_);
  ASSERT_TRUE(h_.wait_for(h_.executor->skip_node(run, "n2", "me", "")).has_value());
  ASSERT_TRUE(h_.run_until(
      [&] { return h_.state(run).steps.at("scavenge-n2").status == StepStatus::kSkipped; }));
  const auto answer = arrive_at_n2(h_, late);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 409) << answer->body;
}

TEST_F(Intents, AnIntentThatIsRefusedWhenItIsSentAgainStartsOver) {
  const auto run = start();
  first_operation_of_n2_that_gets_lost(h_);
  // The agent restarts between the second permit and the second message.
  bool forgot = false;
  h_.cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
    if (!forgot && node.name == "n2" && request.target.ends_with("/permits")) {
      forgot = true;
      h_.cluster.node("n2").permits.clear();
    }
  };
  ASSERT_TRUE(h_.run_to_end(run));
  ASSERT_TRUE(forgot);
  expect_done_once(run);
  const auto events = h_.events(run, "scavenge-n2");
  EXPECT_EQ(std::ranges::count(events, "step-intended"), 2);
  // Nothing is sent that was not intended: between the refusal and the next intent it is pending.
  const auto retry = std::ranges::find(events, "step-retry");
  ASSERT_NE(retry, events.end());
  const auto intended = std::find(retry, events.end(), "step-intended");
  EXPECT_EQ(std::count(retry, intended, "step-acted"), 0);
}

}  // namespace
}  // namespace verger::controller
