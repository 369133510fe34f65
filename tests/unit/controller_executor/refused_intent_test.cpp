// An intent that cannot be carried out is refused, and the refusal says what to do next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_executor/intents_fixture.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Intents;

TEST_F(Intents, ARefusalSaysWhatToDoNext) {
  const auto run = start();
  ASSERT_TRUE(scavenges("n2"));
  const auto text = [](const auto& outcome) {
    return outcome ? std::string("not refused") : outcome.error().message;
  };
  EXPECT_THAT(text(h_.wait_for(h_.executor->resume(run, "me"))), HasSubstr("verger run watch"));
  EXPECT_THAT(text(h_.wait_for(h_.executor->skip_node(run, "n9", "me", ""))),
              HasSubstr("n1, n2, n3"));
  const auto made =
      h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made && !*made) << "n2 scavenges";
  EXPECT_EQ(made->error().refusals.front().code, "run-active") << "it is the run's own work";
  ASSERT_TRUE(h_.executor->pause_cluster("prod", "me", "night", PauseMode::kNow, {}).has_value());
  ASSERT_TRUE(reaches(run, RunStatus::kPaused));
  EXPECT_THAT(text(h_.wait_for(h_.executor->resume(run, "me"))),
              AllOf(HasSubstr("is paused: night"), HasSubstr("verger cluster resume prod")));
  ASSERT_TRUE(h_.executor->cancel(run, "me", "").has_value());
  EXPECT_THAT(text(h_.executor->pause(run, "me", "")), HasSubstr("verger run watch"));
  ASSERT_TRUE(reaches(run, RunStatus::kCancelled));
  EXPECT_THAT(text(h_.executor->pause(run, "me", "")), HasSubstr("verger run show"));
  EXPECT_THAT(text(h_.executor->cancel("nothing", "me", "")), HasSubstr("verger run list"));
}

TEST_F(Intents, SkippingAnUnknownNodeOrRunIsAnError) {
  const auto run = start();
  EXPECT_EQ(h_.wait_for(h_.executor->skip_node(run, "n9", "me", "")).error().code, Errc::kNotFound);
  EXPECT_EQ(h_.executor->pause("no-such-run", "me", "").error().code, Errc::kNotFound);
  const auto resumed = h_.wait_for(h_.executor->resume(run, "me"));
  EXPECT_EQ(resumed.error().code, Errc::kConflict);
}

TEST_F(Intents, APausedClusterStartsNothing) {
  ASSERT_TRUE(h_.registry->set_paused("prod", true, "audit week").has_value());
  auto made = h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "me"));
  ASSERT_TRUE(made && *made);
  const auto run = h_.wait_for(h_.executor->apply((*made)->plan->hash, "me"));
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().error.code, Errc::kRefused);
  EXPECT_THAT(run.error().error.message, HasSubstr("audit week"));
}

}  // namespace
}  // namespace verger::controller
