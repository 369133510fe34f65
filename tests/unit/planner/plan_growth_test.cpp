// Plans of a new node, by what the preflight says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/growth/growth_policy.h"
#include "planner/operations.h"
#include "planner/restore/restore_facts.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

/// Ids of the steps of the plan for a read-only replica n4.
std::string steps_of_growth(std::int64_t redactions) {
  auto snapshot = testing::cluster(3);
  auto joins = testing::node(4);
  joins.read_only_replica = true;
  joins.answered = joins.alive = false;
  joins.role = Role::kOther;
  joins.agent.reset();
  joins.stopped = true;
  Policy policy;
  GrowthPolicy wanted;
  wanted.name = joins.name;
  wanted.node = joins.url;
  wanted.agent = joins.agent_url;
  wanted.repository = "main";
  policy.operation = std::move(wanted);
  RestoreFacts facts;
  facts.generation = {.id = "g1",
                      .node = "n2",
                      .cluster = "prod",
                      .server_version = "24.6.0",
                      .taken_at = {},
                      .verified = "2024-11-13T09:00:00Z",
                      .drilled = {},
                      .failed_check = {},
                      .end_position = 600'000,
                      .restored_bytes = 4'096};
  facts.nodes.push_back({.name = joins.name,
                         .agent_problem = {},
                         .repository_problem = {},
                         .has_repository = true,
                         .repository_id = "r-1",
                         .has_generation = true,
                         .damage = {},
                         .service_problem = {},
                         .room = std::int64_t{1} << 40U});
  facts.redactions = redactions;
  snapshot.joining.push_back(std::move(joins));
  snapshot.preflight = Preflight{.refusals = {}, .notes = {}, .facts = to_json(facts)};
  const auto plan = make_plan(snapshot, policy);
  if (!plan) {
    return testing::codes(plan.error()).front();
  }
  std::string out;
  for (const auto& group : plan->stages.front().groups) {
    for (const auto& step : group) {
      out += (out.empty() ? "" : " ") + step.id;
    }
  }
  return out;
}

TEST(PlanGrowth, WhatRunsHaveRedactedIsRedactedInTheRestoredFiles) {
  EXPECT_EQ(steps_of_growth(0), "prepare-n4 stop-n4 restore-n4 start-n4 follow-n4 register-n4");
  EXPECT_EQ(steps_of_growth(2),
            "prepare-n4 stop-n4 restore-n4 redact-n4 start-n4 follow-n4 register-n4");
}

}  // namespace
}  // namespace verger::planner
