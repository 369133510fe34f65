#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/operations.h"
#include "planner/redaction/redaction_policy.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClusterSnapshot redactable(int voters = 3) {
  auto out = cluster(voters);
  for (auto& node : out.nodes) {
    node.agent->service_control = true;
  }
  return out;
}

Policy redaction(std::string events = "12@customer-7,13@customer-7") {
  Policy out;
  RedactionPolicy wanted;
  wanted.events = std::move(events);
  wanted.reason = "request 4711";
  out.operation = std::move(wanted);
  return out;
}

TEST(PlanRedaction, LooksAtAllNodesFirstAndStopsOneAtATimeTheLeaderLast) {
  const auto plan = make_plan(redactable(), redaction());
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_EQ(outline(*plan),
            "look-n2, look-n3, look-n1, agree | redact-n2 | redact-n3 | lower-n1, note-n1, "
            "resign-n1, start-n1, restore-n1 | check-n1 | redact-n1 | backups");
  EXPECT_EQ(plan->find_step("look-n2")->parameters.at("events").text(),
            R"(["12@customer-7","13@customer-7"])");
  const auto* step = plan->find_step("redact-n1");
  EXPECT_THAT(step->gates, Contains(Gate{"quorum-margin", 1}));
  EXPECT_THAT(step->gates, Contains(Gate{"no-other-work", 0}));
  EXPECT_THAT(step->gates, Contains(Gate{"not-leader", 0}));
  EXPECT_THAT(step->undo, HasSubstr("start n1"));
  EXPECT_EQ(plan->policy.operation.index(), redaction().operation.index());
}

TEST(PlanRedaction, IncludesReadOnlyReplicas) {
  auto snapshot = redactable();
  snapshot.nodes.push_back(node(4, Role::kReadOnlyReplica));
  snapshot.nodes.back().agent->service_control = true;
  const auto plan = make_plan(snapshot, redaction());
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_THAT(outline(*plan), HasSubstr("redact-n3 | redact-n4 | lower-n1"));
}

TEST(PlanRedaction, TakesNamesWithCommasFromLines) {
  EXPECT_THAT(listed_events("1@a,2@b,1@a"), ElementsAre("1@a", "2@b"));
  EXPECT_THAT(listed_events("# ticket 12\n1@a,b\r\n\n2@c\n"), ElementsAre("1@a,b", "2@c"));
}

TEST(PlanRedaction, RefusesWhatNoRedactionMayTouchAndWhatHasNoReason) {
  auto policy = redaction("1@$scavengePoints,0@$$customer-7,x@a,7,3@b");
  redaction_of(policy).reason.clear();
  const auto plan = make_plan(redactable(), policy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()), ElementsAre("event-refused", "event-refused", "event-refused",
                                               "event-refused", "no-reason"));
  EXPECT_FALSE(make_plan(redactable(), redaction("")).has_value());
}

TEST(PlanRedaction, RefusesWithoutAgentsThatStopServers) {
  auto snapshot = redactable();
  snapshot.nodes[1].agent->service_control = false;
  snapshot.nodes[2].agent_url.clear();
  snapshot.nodes[2].agent.reset();
  snapshot.nodes[2].agent_answered = false;
  const auto plan = make_plan(snapshot, redaction());
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()),
              ElementsAre("n2:offline-needs-service-control", "n3:offline-needs-agent"));
  EXPECT_THAT(plan.error().back().message, HasSubstr("redact its files"));
  EXPECT_FALSE(make_plan(redactable(2), redaction()).has_value()) << "no quorum would be left";
}

TEST(PlanRedaction, NothingElseBeginsBesideOne) {
  const auto* kind = find_agent_kind("offline_redaction");
  ASSERT_NE(kind, nullptr);
  EXPECT_TRUE(kind->keeps_others_out);
  EXPECT_TRUE(kind->touches_files);
  EXPECT_FALSE(kind->needs_server);
  ASSERT_NE(find_agent_kind("redaction_check"), nullptr);
  EXPECT_FALSE(find_agent_kind("redaction_check")->keeps_others_out);
}

}  // namespace
}  // namespace verger::planner
