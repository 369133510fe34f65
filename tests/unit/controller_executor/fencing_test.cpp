#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::Contains;
using ::testing::HasSubstr;

std::expected<StoredPlan, PlanRefused> plan_of(ControllerHarness& h) {
  auto made =
      h.wait_for(h.executor->make_plan("prod", ControllerHarness::quick_policy(), "person"));
  EXPECT_TRUE(made.has_value());
  return *std::move(made);
}

TEST(Fencing, OneThatSharesItsJournalRefusesNodesWithoutAgents) {
  ControllerHarness h(3, false);
  h.options.shared_journal = true;
  h.boot();
  h.register_cluster();
  const auto plan = plan_of(h);
  ASSERT_FALSE(plan.has_value());
  ASSERT_EQ(plan.error().refusals.size(), 1U);
  EXPECT_EQ(plan.error().refusals[0].code, "no-fencing");
  EXPECT_THAT(plan.error().refusals[0].message, HasSubstr("verger-agent"));
}

TEST(Fencing, OneThatSharesItsJournalPlansWhereEveryNodeHasOne) {
  ControllerHarness h;
  h.options.shared_journal = true;
  h.boot();
  h.register_cluster();
  EXPECT_TRUE(plan_of(h).has_value());
}

TEST(Fencing, OneThatIsAloneSaysInThePlanThatThereIsNone) {
  ControllerHarness h(3, false);
  h.boot();
  h.register_cluster();
  const auto plan = plan_of(h);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(plan->plan->notes, Contains(HasSubstr("older controllers are not fenced off there")));
}

}  // namespace
}  // namespace verger::controller
