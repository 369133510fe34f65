// Plans of another number of voters: the order, the quorum of each moment, and each reason why
// there is none.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/operations.h"
#include "planner/resize/resize_facts.h"
#include "planner/resize/resize_policy.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kOneGiB = std::int64_t{1} << 30U;

/// n1 leads; n4 and n5 (or two more) are stopped machines with agents where the cluster grows.
struct ResizeCase {
  ResizeCase(int from, int to) : snapshot(testing::cluster(from)) {
    policy.operation = ResizePolicy();
    wanted().to = to;
    for (const auto& each : snapshot.nodes) {
      facts.nodes.push_back(size_of(each.name, from));
    }
    if (to < from) {
      return;
    }
    wanted().repository = "main";
    facts.restore.emplace();
    facts.restore->generation = {.id = "g1",
                                 .node = "n2",
                                 .cluster = "prod",
                                 .server_version = "24.6.0",
                                 .taken_at = {},
                                 .verified = "2024-11-13T09:00:00Z",
                                 .drilled = {},
                                 .failed_check = {},
                                 .end_position = 600'000,
                                 .restored_bytes = 4 * kOneGiB};
    for (int i = from + 1; i <= to; ++i) {
      auto joins = testing::node(i);
      joins.answered = joins.alive = false;
      joins.role = Role::kOther;
      joins.agent.reset();
      joins.stopped = true;
      wanted().nodes += (wanted().nodes.empty() ? "" : ",") + joins.name + "=" + joins.url;
      wanted().agents += (wanted().agents.empty() ? "" : ",") + joins.agent_url;
      facts.nodes.push_back(size_of(joins.name, to));
      facts.restore->nodes.push_back({.name = joins.name,
                                      .agent_problem = {},
                                      .repository_problem = {},
                                      .has_repository = true,
                                      .repository_id = "r-1",
                                      .has_generation = true,
                                      .damage = {},
                                      .service_problem = {},
                                      .room = 50 * kOneGiB});
      snapshot.joining.push_back(std::move(joins));
    }
  }
  static SizeNode size_of(std::string name, std::int64_t size) {
    return {.name = std::move(name),
            .agent_problem = {},
            .file = "/etc/eventstore/eventstore.conf",
            .file_problem = {},
            .size = size,
            .seeds_from = {},
            .seeds = 2,
            .service_control = true};
  }
  ResizePolicy& wanted() { return resize_of(policy); }
  NodeSnapshot& node(std::size_t number) { return snapshot.nodes.at(number - 1); }
  SizeNode& of(std::size_t number) { return facts.nodes.at(number - 1); }
  std::expected<Plan, std::vector<Refusal>> plan() {
    snapshot.preflight = Preflight{.refusals = {}, .notes = {}, .facts = to_json(facts)};
    return make_plan(snapshot, policy);
  }
  std::vector<std::string> refused() {
    const auto made = plan();
    return made ? std::vector<std::string>() : testing::codes(made.error());
  }
  /// Ids of steps by group.
  std::vector<std::string> order() {
    std::vector<std::string> out;
    const auto made = plan();
    if (!made) {
      return refused();
    }
    for (const auto& group : made->stages.front().groups) {
      std::string ids;
      for (const auto& step : group) {
        ids += (ids.empty() ? "" : " ") + step.id;
      }
      out.push_back(ids);
    }
    return out;
  }
  std::vector<std::string> notes() {
    const auto made = plan();
    return made ? made->notes : std::vector<std::string>();
  }

  ClusterSnapshot snapshot;
  Policy policy;
  ResizeFacts facts;
};

TEST(PlanResize, WhatRunsHaveRedactedIsRedactedInTheRestoredFiles) {
  ResizeCase three(3, 5);
  three.facts.restore->redactions = 2;
  EXPECT_THAT(three.order(),
              ElementsAre("prepare-n4 prepare-n5", "stop-n4 stop-n5", "restore-n4 restore-n5",
                          "redact-n4 redact-n5", "size-n2", "size-n3", "size-n1", "settle",
                          "start-n4", "start-n5", "follow-n4 follow-n5", "register"));
}

TEST(PlanResize, FromThreeToFive) {
  ResizeCase three(3, 5);
  EXPECT_THAT(three.order(),
              ElementsAre("prepare-n4 prepare-n5", "stop-n4 stop-n5", "restore-n4 restore-n5",
                          "size-n2", "size-n3", "size-n1", "settle", "start-n4", "start-n5",
                          "follow-n4 follow-n5", "register"));
  EXPECT_THAT(
      three.notes(),
      Contains("from the restart of n1: 3 voters of size 5, 3 confirm a write, 0 may fail"));
  EXPECT_THAT(three.notes(), Contains("afterwards: 5 voters, 3 confirm a write, 2 may fail"));
}

TEST(PlanResize, FromFiveToThree) {
  ResizeCase five(5, 3);
  EXPECT_THAT(five.order(), ElementsAre("stop-n4", "stop-n5", "settle-before", "size-n2", "size-n3",
                                        "size-n1", "settle", "register"));
  five.wanted().leaving = "n2,n4";
  EXPECT_THAT(five.order(), ElementsAre("stop-n2", "stop-n4", "settle-before", "size-n3", "size-n5",
                                        "size-n1", "settle", "register"));
  EXPECT_THAT(five.notes(), Contains(HasSubstr("n2 and n4 must never start again")));
}

TEST(PlanResize, FromFiveToSevenAndBack) {
  ResizeCase five(5, 7);
  EXPECT_THAT(five.order(), Contains("start-n6"));
  EXPECT_THAT(
      five.notes(),
      Contains("from the restart of n1: 5 voters of size 7, 4 confirm a write, 1 may fail"));
  EXPECT_THAT(five.notes(), Contains("from the restart of n4: 2 of size 5 are left, 3 are needed; "
                                     "writes may pause until n5 is restarted"));
  ResizeCase seven(7, 5);
  EXPECT_THAT(seven.order(), Contains("settle-before"));
  EXPECT_THAT(seven.notes(),
              Contains("from the restart of n3: writes may pause until n4 is restarted, too"));
}

TEST(PlanResize, OneAtomicStageThatEndsWithTheRegistration) {
  const auto plan = ResizeCase(3, 5).plan();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->stages.size(), 1U);
  EXPECT_TRUE(plan->stages.front().atomic);
  EXPECT_EQ(plan->stages.front().on_failure, FailureRule::kUndoAll);
  const auto* size = plan->find_step("size-n1");
  ASSERT_NE(size, nullptr);
  EXPECT_TRUE(size->cost.leader_move);
  EXPECT_EQ(size->parameters.at("addSeeds"),
            Json(Json::Array{Json("10.0.0.4:2113"), Json("10.0.0.5:2113")}));
  EXPECT_EQ(plan->find_step("size-n2")->parameters.at("later"),
            Json(Json::Array{Json("size-n3"), Json("size-n1")}));
  EXPECT_EQ(plan->find_step("start-n4")->parameters.at("size"), Json(5));
}

TEST(PlanResize, OneThatLeavesIsStoppedOnlyWhileTheOthersAreAQuorum) {
  const auto plan = ResizeCase(5, 3).plan();
  ASSERT_TRUE(plan);
  for (const auto* id : {"stop-n4", "stop-n5"}) {
    EXPECT_THAT(plan->find_step(id)->gates, Contains(Gate{"quorum-margin", 1})) << id;
  }
  for (const auto* id : {"size-n2", "size-n3", "size-n1", "settle"}) {
    EXPECT_THAT(plan->find_step(id)->gates, Contains(Gate{"cluster-identity", 0})) << id;
  }
}

TEST(PlanResize, HealsTheFiltersOfTheMembersThatAreRestarted) {
  ResizeCase three(3, 5);
  EXPECT_FALSE(three.plan()->find_step("size-n2")->parameters.contains("healFilter"));
  three.wanted().heal_existence_filter = true;
  const auto plan = three.plan();
  ASSERT_TRUE(plan);
  for (const auto* id : {"size-n1", "size-n2", "size-n3"}) {
    EXPECT_EQ(plan->find_step(id)->parameters.at("healFilter").text(), "true") << id;
  }
}

TEST(PlanResize, SeedsInBracketsAreNotAddedToAList) {
  ResizeCase three(3, 5);
  three.snapshot.joining.front().url = "http://[::1]:2113";
  EXPECT_THAT(three.refused(),
              ElementsAre("n1:seed-not-possible", "n2:seed-not-possible", "n3:seed-not-possible"));
  for (auto& each : three.facts.nodes) {
    each.seeds = 0;
  }
  const auto plan = three.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->find_step("size-n1")->parameters.at("addSeeds"), Json(Json::Array{}));
}

TEST(PlanResize, DeadVotersLeaveFirst) {
  ResizeCase five(5, 3);
  five.node(2).answered = five.node(2).alive = false;
  five.node(2).role = Role::kOther;
  five.node(2).stopped = true;
  EXPECT_THAT(five.order(), ElementsAre("stop-n2", "stop-n5", "settle-before", "size-n3", "size-n4",
                                        "size-n1", "settle", "register"));
  five.node(2).agent_answered = false;
  EXPECT_THAT(five.refused(), Contains("n2:not-fenced"));
  five.wanted().leaving_are_gone = true;
  EXPECT_THAT(five.order(), ElementsAre("stop-n5", "settle-before", "size-n3", "size-n4", "size-n1",
                                        "settle", "register"));
}

TEST(PlanResize, RefusesSizesThatAreNoStep) {
  for (const int to : {3, 4, 7, 9}) {
    ResizeCase three(3, 5);
    three.wanted().to = to;
    EXPECT_THAT(three.refused(), Contains("size-not-possible")) << to;
  }
  ResizeCase three(3, 5);
  three.wanted().to = 1;
  EXPECT_THAT(three.refused(), Contains("policy-invalid"));
  ResizeCase one(1, 3);
  EXPECT_THAT(one.refused(), Contains("size-not-possible"));
}

TEST(PlanResize, RefusesWithEveryReason) {
  ResizeCase three(3, 5);
  three.of(1).file.clear();
  three.of(2).file_problem = "started with --cluster-size 3";
  three.of(3).size = 5;
  three.of(4).size = 3;
  three.of(5).agent_problem = "too old";
  EXPECT_THAT(three.refused(), ::testing::UnorderedElementsAre(
                                   "n1:no-server-config", "n2:size-not-in-file", "n3:another-size",
                                   "n4:another-size", "n5:agent-cannot-resize"));
  ResizeCase down(3, 5);
  down.node(3).answered = down.node(3).alive = false;
  EXPECT_THAT(down.refused(), Contains("n3:member-down"));
  ResizeCase busy(3, 5);
  busy.node(2).agent_work = {{"o1", "backup"}};
  EXPECT_THAT(busy.refused(), Contains("n2:agent-busy"));
  ResizeCase scavenged(3, 5);
  scavenged.node(2).scavenge_running = true;
  EXPECT_THAT(scavenged.refused(), Contains("n2:scavenge-running"));
  ResizeCase runs(3, 5);
  runs.snapshot.joining.front().answered = true;
  EXPECT_THAT(runs.refused(), Contains("n4:node-runs"));
  ResizeCase unverified(3, 5);
  unverified.facts.restore->generation.verified.clear();
  EXPECT_THAT(unverified.refused(), ElementsAre("not-verified"));
}

TEST(PlanResize, ALeaderThatLeavesIsStoppedLast) {
  ResizeCase leads(5, 3);
  leads.wanted().leaving = "n1,n5";
  EXPECT_THAT(leads.refused(), ::testing::IsEmpty());
  const auto plan = leads.plan();
  ASSERT_TRUE(plan);
  const auto& groups = plan->stages.front().groups;
  EXPECT_EQ(groups[0].front().id, "stop-n5");
  EXPECT_FALSE(groups[0].front().cost.leader_move);
  EXPECT_EQ(groups[1].front().id, "stop-n1");
  EXPECT_TRUE(groups[1].front().cost.leader_move);
  EXPECT_THAT(plan->notes, Contains(HasSubstr("n1 leads: it resigns before it is stopped")));
}

TEST(PlanResize, FactsGoThroughJson) {
  const auto facts = ResizeCase(3, 5).facts;
  const auto again = parse_resize_facts(to_json(facts));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, facts);
  EXPECT_FALSE(parse_resize_facts(Json("text")));
  EXPECT_FALSE(parse_resize_facts(Json::Object{{"nodes", Json(3)}}));
}

}  // namespace
}  // namespace verger::planner
