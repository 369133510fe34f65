#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/controller_harness.h"

// What an operation looks at before its plan is made, beyond the snapshot.
namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::Contains;

struct Looked {
  planner::Preflight found;
  int times = 0;
  std::string cluster;
  std::size_t nodes = 0;
};

net::awaitable<planner::Preflight> look(Looked* looked, PreflightContext context) {
  ++looked->times;
  looked->cluster = context.cluster.name;
  looked->nodes = context.snapshot.nodes.size();
  co_return looked->found;
}

class PreflightOfAnOperation : public ::testing::Test {
 protected:
  void boot(std::string operation) {
    h_.more_kinds = [this, operation = std::move(operation)](StepKinds& kinds) {
      kinds.add_preflight(operation, [this](PreflightContext context) {
        return look(&looked_, std::move(context));
      });
    };
    h_.boot();
    h_.register_cluster();
  }
  std::expected<StoredPlan, PlanRefused> plan() {
    return *h_.wait_for(h_.executor->make_plan("prod", ControllerHarness::quick_policy(), "test"));
  }

  Looked looked_;
  ControllerHarness h_;
};

TEST_F(PreflightOfAnOperation, SeesTheClusterAndItsNotesAreThePlans) {
  looked_.found.notes = {"n2: the paint is old"};
  boot("scavenge");
  const auto made = plan();
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(looked_.times, 1);
  EXPECT_EQ(looked_.cluster, "prod");
  EXPECT_EQ(looked_.nodes, 3U);
  EXPECT_THAT(made->plan->notes, Contains("n2: the paint is old"));
}

TEST_F(PreflightOfAnOperation, ItsRefusalsRefuseThePlanWithAllThatTheySay) {
  const planner::Refusal refusal{.code = "paint-old",
                                 .node = "n2",
                                 .message = "the paint is of last year",
                                 .hint = "buy another one"};
  looked_.found.refusals = {refusal};
  boot("scavenge");
  const auto made = plan();
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().refusals, ::testing::ElementsAre(refusal));
}

TEST_F(PreflightOfAnOperation, ThatOfAnotherOneIsNotLookedAt) {
  boot("another");
  EXPECT_TRUE(plan().has_value());
  EXPECT_EQ(looked_.times, 0);
}

}  // namespace
}  // namespace verger::controller
