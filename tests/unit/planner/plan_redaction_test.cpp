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
using ::testing::Not;

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
            "resign-n1, start-n1, restore-n1 | check-n1 | redact-n1 | confirm-n2 | confirm-n3 | "
            "confirm-n1 | backups");
  EXPECT_EQ(plan->find_step("look-n2")->parameters.at("events").text(),
            R"(["12@customer-7","13@customer-7"])");
  const auto* step = plan->find_step("redact-n1");
  EXPECT_THAT(step->gates, Contains(Gate{"quorum-margin", 1}));
  EXPECT_THAT(step->gates, Contains(Gate{"no-other-work", 0}));
  EXPECT_THAT(step->gates, Contains(Gate{"not-leader", 0}));
  EXPECT_THAT(step->undo, HasSubstr("start n1"));
  EXPECT_EQ(plan->policy.operation.index(), redaction().operation.index());
}

/// Every server offers to switch chunk files.
ClusterSnapshot running(int voters = 3) {
  auto out = redactable(voters);
  for (auto& node : out.nodes) {
    node.agent->online_problem.clear();
  }
  return out;
}

TEST(PlanRedaction, LeavesNodesRunningWhereTheirServersOfferIt) {
  const auto plan = make_plan(running(), redaction());
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_EQ(outline(*plan),
            "look-n2, look-n3, look-n1, agree | redact-n2 | redact-n3 | redact-n1 | confirm-n2 | "
            "confirm-n3 | confirm-n1 | backups");
  const auto* step = plan->find_step("redact-n1");
  EXPECT_EQ(step->kind, "online_redaction");
  EXPECT_THAT(step->gates, Contains(Gate{"quorum-margin", 0}));
  EXPECT_THAT(step->gates, Contains(Gate{"no-other-work", 0}));
  EXPECT_THAT(step->gates, Not(Contains(Gate{"not-leader", 0})));
  EXPECT_THAT(step->reason, HasSubstr("switches chunk files in while it runs"));
  EXPECT_EQ(step->undo, "");
  EXPECT_NE(plan->find_step("look-n2")->parameters.find("online"),
            plan->find_step("look-n2")->parameters.end());
}

TEST(PlanRedaction, NeedsNoQuorumToSpareWhereNoNodeIsStopped) {
  EXPECT_TRUE(make_plan(running(1), redaction()).has_value());
  EXPECT_FALSE(make_plan(redactable(1), redaction()).has_value());
  auto without_service = running();
  without_service.nodes[0].agent->service_control = false;
  EXPECT_TRUE(make_plan(without_service, redaction()).has_value());
}

TEST(PlanRedaction, ChoosesForEachNodeAndSaysWhy) {
  auto snapshot = running();
  snapshot.nodes[1].agent->online_problem = "version 22.10.5 does not offer to switch chunk files";
  const auto plan = make_plan(snapshot, redaction());
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_EQ(plan->find_step("redact-n2")->kind, "offline_redaction");
  EXPECT_THAT(plan->find_step("redact-n2")->reason,
              HasSubstr("not while it runs: version 22.10.5"));
  EXPECT_EQ(plan->find_step("redact-n3")->kind, "online_redaction");
  EXPECT_EQ(plan->find_step("redact-n1")->kind, "online_redaction");
  EXPECT_EQ(plan->find_step("resign-n1"), nullptr) << "it serves on";
  EXPECT_THAT(plan->forecast.front().row, HasSubstr("22.10.5"));
}

TEST(PlanRedaction, HealsTheFiltersOfNodesThatAreStoppedAnyway) {
  auto snapshot = running();
  snapshot.nodes[1].agent->online_problem = "version 22.10.5 does not offer to switch chunk files";
  auto policy = redaction();
  EXPECT_FALSE(
      make_plan(snapshot, policy)->find_step("redact-n2")->parameters.contains("healFilter"));
  redaction_of(policy).heal_existence_filter = true;
  const auto plan = make_plan(snapshot, policy);
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_EQ(plan->find_step("redact-n2")->parameters.at("healFilter").text(), "true");
  EXPECT_FALSE(plan->find_step("redact-n3")->parameters.contains("healFilter")) << "it serves on";
}

TEST(PlanRedaction, TheStrategyIsTheOperators) {
  auto policy = redaction();
  redaction_of(policy).strategy = RedactionStrategy::kOffline;
  const auto offline = make_plan(running(), policy);
  ASSERT_TRUE(offline.has_value());
  EXPECT_EQ(offline->find_step("redact-n2")->kind, "offline_redaction");
  redaction_of(policy).strategy = RedactionStrategy::kOnline;
  EXPECT_TRUE(make_plan(running(), policy).has_value());
  auto snapshot = running();
  snapshot.nodes[2].agent->online_problem = "no process listens there";
  const auto refused = make_plan(snapshot, policy);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(codes(refused.error()), ElementsAre("n3:online-not-possible"));
  EXPECT_THAT(refused.error().front().message, HasSubstr("no process listens"));
}

TEST(PlanRedaction, LaterServersAreRedactedOnlineWithALicenceAlone) {
  auto snapshot = running();
  for (auto& node : snapshot.nodes) {
    node.version = "24.10.0";
  }
  auto policy = redaction();
  const auto plan = make_plan(snapshot, policy);
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_EQ(plan->find_step("redact-n2")->kind, "offline_redaction");
  EXPECT_THAT(plan->find_step("redact-n2")->reason, HasSubstr("wants a licence"));
  redaction_of(policy).strategy = RedactionStrategy::kOnline;
  const auto refused = make_plan(snapshot, policy);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(
      codes(refused.error()),
      ElementsAre("n1:online-needs-licence", "n2:online-needs-licence", "n3:online-needs-licence"));
  redaction_of(policy).interface_licensed = true;
  const auto licensed = make_plan(snapshot, policy);
  ASSERT_TRUE(licensed.has_value());
  EXPECT_EQ(licensed->find_step("redact-n2")->kind, "online_redaction");
}

TEST(PlanRedaction, SaysOfANodeThatCannotBeRedactedInEitherWayWhatSpeaksAgainstBoth) {
  auto snapshot = running();
  snapshot.nodes[1].agent->service_control = false;
  snapshot.nodes[1].agent->online_problem = "no process listens there";
  const auto plan = make_plan(snapshot, redaction());
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()), ElementsAre("n2:offline-needs-service-control"));
  EXPECT_THAT(plan.error().front().message, HasSubstr("no process listens there"));
}

TEST(PlanRedaction, RefusesANodeWhoseScavengeIsUnfinished) {
  for (auto snapshot : {redactable(), running()}) {
    auto& node = snapshot.nodes[2];
    node.agent->unfinished = Unfinished{.point = {4, 300'000, 0, ""}, .stage = "Executing"};
    const auto refused = make_plan(snapshot, redaction());
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(codes(refused.error()), ElementsAre("n3:scavenge-unfinished"));
    EXPECT_THAT(refused.error().front().message, HasSubstr("point 4 is unfinished (Executing)"));
    EXPECT_THAT(refused.error().front().hint, HasSubstr("verger plan scavenge prod"));
  }
}

TEST(PlanRedaction, IsRefusedWhileANodeIsDown) {
  for (auto snapshot : {redactable(), running()}) {
    auto& node = snapshot.nodes[1];
    node.answered = node.alive = false;
    node.role = Role::kOther;
    node.agent.reset();
    const auto refused = make_plan(snapshot, redaction());
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(codes(refused.error()), Contains(HasSubstr("n2:")));
  }
}

TEST(PlanRedaction, ExpiresBackupsWhereTheRepositoryIs) {
  auto policy = redaction();
  redaction_of(policy).expire_backups = "nightly";
  auto snapshot = running();
  snapshot.preflight = Preflight{
      .refusals = {},
      .notes = {},
      .facts = Json::Object{{"repositories", Json::Object{{"n1", "r-7"}, {"n3", "r-7"}}}}};
  const auto plan = make_plan(snapshot, policy);
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_THAT(outline(*plan), HasSubstr("| backups | backup-n3 | verify-n3 | expire-n3"));
  for (const auto* step : {"backup-n3", "verify-n3", "expire-n3"}) {
    EXPECT_EQ(plan->find_step(step)->parameters.at("repositoryId"), Json("r-7")) << step;
  }
}

TEST(PlanRedaction, ExpiresBackupsOnceANewOneIsThere) {
  auto policy = redaction();
  redaction_of(policy).expire_backups = "nightly";
  const auto plan = make_plan(running(), policy);
  ASSERT_TRUE(plan.has_value()) << codes(plan.error()).front();
  EXPECT_THAT(outline(*plan), HasSubstr("| backups | backup-n2 | verify-n2 | expire-n2"));
  EXPECT_EQ(plan->find_step("backup-n2")->parameters.at("full"), Json(true));
  EXPECT_EQ(plan->find_step("expire-n2")->parameters.at("repository"), Json("nightly"));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("ALL BACKUPS OF THIS CLUSTER IN nightly")));
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
