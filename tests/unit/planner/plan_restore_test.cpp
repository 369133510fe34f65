// Plans of a restore: stages, what is lost, and each reason why there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "planner/operations.h"
#include "planner/restore/restore_facts.h"
#include "planner/restore/restore_order.h"
#include "planner/restore/restore_policy.h"
#include "planner/restore/restore_steps.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kGiB = std::int64_t{1} << 30U;

/// Three nodes, n1 leads; agents that all see backup "g1" of n2 in one repository.
struct RestoreCase {
  explicit RestoreCase(RestoreScope scope, int voters = 3) : snapshot(testing::cluster(voters)) {
    policy.operation = RestorePolicy();
    wanted().scope = scope;
    wanted().repository = "main";
    if (scope == RestoreScope::kNode) {
      wanted().nodes = "n3";
    }
    facts.generation = {.id = "g1",
                        .node = "n2",
                        .cluster = "prod",
                        .server_version = "24.6.0",
                        .taken_at = format_ticks(
                            Ticks(snapshot.taken_at.value() - 90 * 60'000 * kTicksPerMillisecond)),
                        .verified = "2024-11-13T09:00:00Z",
                        .drilled = {},
                        .failed_check = {},
                        .end_position = 600'000,
                        .restored_bytes = 4 * kGiB};
    for (const auto& node : snapshot.nodes) {
      facts.nodes.push_back({.name = node.name,
                             .agent_problem = {},
                             .repository_problem = {},
                             .has_repository = true,
                             .repository_id = "r-1",
                             .has_generation = true,
                             .damage = {},
                             .service_problem = {},
                             .room = 50 * kGiB});
    }
  }
  RestorePolicy& wanted() { return restore_of(policy); }
  NodeSnapshot& node(std::size_t number) { return snapshot.nodes.at(number - 1); }
  RestoreNode& of(std::size_t number) { return facts.nodes.at(number - 1); }
  void stop(std::size_t number) {
    auto& down = node(number);
    down.answered = false;
    down.alive = false;
    down.role = Role::kOther;
    down.writer_checkpoint = -1;
    down.agent.reset();
    down.stopped = true;
    down.problem = "connection refused";
  }
  std::expected<Plan, std::vector<Refusal>> plan() {
    snapshot.preflight = Preflight{.refusals = {}, .notes = {}, .facts = to_json(facts)};
    return make_plan(snapshot, policy);
  }
  std::vector<std::string> refused() {
    const auto made = plan();
    return made ? std::vector<std::string>() : testing::codes(made.error());
  }

  ClusterSnapshot snapshot;
  Policy policy;
  RestoreFacts facts;
};

const Step& restore_step(const Plan& made, std::string_view id) {
  const auto* found = made.find_step(id);
  if (found == nullptr) {
    throw std::logic_error(fmt::format("the plan has no step {}", id));
  }
  return *found;
}

std::vector<std::string> gates_of(const Step& step) {
  std::vector<std::string> out;
  for (const auto& gate : step.gates) {
    out.push_back(gate.name);
  }
  return out;
}

TEST(PlanRestore, AWholeClusterIsOneAtomicStage) {
  RestoreCase life(RestoreScope::kCluster);
  const auto plan = life.plan();
  ASSERT_TRUE(plan.has_value()) << ::testing::PrintToString(life.refused());
  EXPECT_EQ(testing::outline(*plan),
            "prepare, stop-n1, stop-n2, stop-n3, restore-n1, restore-n2, restore-n3, commit, "
            "start-n1, start-n2, start-n3 | check");
  const auto& stage = plan->stages.front();
  EXPECT_TRUE(stage.atomic);
  EXPECT_EQ(stage.on_failure, FailureRule::kUndoAll);
  EXPECT_EQ(stage.groups.size(), 5U) << "each phase on all nodes before the next";
  EXPECT_FALSE(plan->stages.back().atomic);
  EXPECT_EQ(plan->stages.back().on_failure, FailureRule::kStop) << "it waits for a person";
  const auto& restored = restore_step(*plan, "restore-n1").parameters;
  EXPECT_EQ(restored.at("generation"), Json("g1"));
  EXPECT_EQ(restored.at("otherNode"), Json(true));
  EXPECT_EQ(restored.at("repositoryId"), Json("r-1"));
  EXPECT_EQ(restore_step(*plan, "restore-n2").parameters.at("otherNode"), Json(false));
}

TEST(PlanRestore, WhatIsLostComesFirst) {
  RestoreCase life(RestoreScope::kCluster);
  life.node(2).writer_checkpoint = 500'000;
  life.stop(3);
  const auto plan = life.plan();
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(plan->notes.front(),
              AllOf(HasSubstr("ALL EVENTS WRITTEN AFTER"), HasSubstr("(1 h 30 min before this"),
                    HasSubstr("backup g1 of n2"), HasSubstr("600,000")));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("THE CLUSTER SERVES NOW: n1 leads it")));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("n3: stopped now")));
  ASSERT_EQ(plan->forecast.size(), 3U);
  EXPECT_THAT(plan->forecast[0].row, HasSubstr("LOSES 390.6 KiB: its log ends at 1,000,000"));
  EXPECT_THAT(plan->forecast[1].row, HasSubstr("loses nothing"));
  EXPECT_THAT(plan->forecast[2].row, HasSubstr("LOSES what it has beyond the backup"));
}

TEST(PlanRestore, AClusterThatIsDownIsPlannedAllTheSame) {
  RestoreCase life(RestoreScope::kCluster);
  for (const std::size_t number : {1U, 2U, 3U}) {
    life.stop(number);
  }
  life.snapshot.leader_stable_ms = -1;
  const auto plan = life.plan();
  ASSERT_TRUE(plan.has_value()) << ::testing::PrintToString(life.refused());
  EXPECT_THAT(plan->notes, Not(Contains(HasSubstr("SERVES NOW"))));
  for (const auto& stage : plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        EXPECT_THAT(gates_of(step), IsEmpty()) << step.id << " would wait for what is lost";
      }
    }
  }
}

TEST(PlanRestore, VotersWhoseMachinesAreLostAreNoted) {
  const auto notes = [](int registered, std::size_t lost) {
    RestoreCase c(RestoreScope::kCluster, registered);
    c.snapshot.unregistered_voters = lost;
    return c.plan().value().notes;
  };
  EXPECT_THAT(notes(3, 0), Not(Contains(HasSubstr("must never start again"))));
  // Two of three elect a leader.
  EXPECT_THAT(notes(2, 1),
              AllOf(Contains("1 voter in gossip is not registered and does not answer: it must "
                             "never start again with its former files"),
                    Not(Contains(HasSubstr("no majority")))));
  EXPECT_THAT(notes(1, 2),
              AllOf(Contains("2 voters in gossip are not registered and do not answer: they must "
                             "never start again with their former files"),
                    Contains(HasSubstr("1 of 3 voters is restored, which is no majority"))));
}

TEST(PlanRestore, NeitherHoursNorALeaderHoldAWholeClusterUp) {
  RestoreCase life(RestoreScope::kCluster);
  life.snapshot.hours = Hours{
      .open = false, .since = life.snapshot.taken_at, .until = std::nullopt, .reason = "closed"};
  life.node(1).role = Role::kOther;
  EXPECT_THAT(life.refused(), IsEmpty());
}

TEST(PlanRestore, ProcessesThatComeAndGoMakeAPlanNotStale) {
  RestoreCase life(RestoreScope::kCluster);
  const auto plan = life.plan();
  ASSERT_TRUE(plan.has_value());
  auto later = life.snapshot;
  later.nodes[1].instance_id = "instance-9";
  later.nodes[0].role = Role::kOther;
  EXPECT_THAT(diff_basis(plan->basis, basis_of(later, life.policy)), IsEmpty());
  later.nodes[1].agent_url = "http://elsewhere:2114";
  EXPECT_THAT(diff_basis(plan->basis, basis_of(later, life.policy)),
              ElementsAre(HasSubstr("n2: agent was")));

  RestoreCase one(RestoreScope::kNode);
  const auto of_one = one.plan();
  ASSERT_TRUE(of_one.has_value());
  auto moved = one.snapshot;
  moved.nodes[2].instance_id = "instance-9";
  EXPECT_THAT(diff_basis(of_one->basis, basis_of(moved, one.policy)), IsEmpty());
  moved.nodes[1].instance_id = "instance-8";
  EXPECT_THAT(diff_basis(of_one->basis, basis_of(moved, one.policy)),
              ElementsAre(HasSubstr("n2: instance")));
}

TEST(PlanRestore, SingleNodesComeOneAfterAnother) {
  RestoreCase life(RestoreScope::kNode, 5);
  life.wanted().nodes = " n5,n3 ,";
  const auto plan = life.plan();
  ASSERT_TRUE(plan.has_value()) << ::testing::PrintToString(life.refused());
  EXPECT_EQ(testing::outline(*plan),
            "prepare-n3, stop-n3, restore-n3, commit-n3, start-n3 | check-n3 | "
            "prepare-n5, stop-n5, restore-n5, commit-n5, start-n5 | check-n5");
  EXPECT_THAT(gates_of(restore_step(*plan, "stop-n3")),
              ElementsAre("cluster-identity", "agents-answer", "one-leader", "quorum-margin",
                          "not-leader", "maintenance-window"));
  EXPECT_THAT(gates_of(restore_step(*plan, "restore-n3")),
              ElementsAre("one-leader", "quorum-margin"));
  EXPECT_THAT(gates_of(restore_step(*plan, "start-n3")), IsEmpty());
  EXPECT_THAT(plan->notes, Not(Contains(HasSubstr("LOST"))));
}

TEST(PlanRestore, ADeadOrDamagedNodeDoesNotHoldItsOwnRestoreUp) {
  RestoreCase dead(RestoreScope::kNode);
  dead.stop(3);
  EXPECT_THAT(dead.refused(), IsEmpty());

  RestoreCase damaged(RestoreScope::kNode);
  damaged.node(3).agent->files_problem = "chunk-000000.000000 is damaged";
  const auto plan = damaged.plan();
  ASSERT_TRUE(plan.has_value()) << ::testing::PrintToString(damaged.refused());
  EXPECT_THAT(gates_of(restore_step(*plan, "stop-n3")), Not(Contains("agents-answer")))
      << "it would wait until the damaged files can be read";
}

TEST(PlanRestore, OldFilesAreRemovedAtTheEndWhereThatIsWanted) {
  RestoreCase life(RestoreScope::kCluster);
  life.wanted().keep_old = false;
  const auto plan = life.plan();
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(testing::outline(*plan), HasSubstr(" | check | discard-n1, discard-n2, discard-n3"));
  EXPECT_EQ(plan->stages.back().on_failure, FailureRule::kSkipNode);
}

TEST(PlanRestore, DiscardingNeedsNeitherRepositoryNorPreflight) {
  RestoreCase life(RestoreScope::kNode);
  life.wanted() = RestorePolicy();
  life.wanted().task = RestoreTask::kDiscardOld;
  EXPECT_THAT(testing::codes(make_plan(life.snapshot, life.policy).error()),
              ElementsAre("no-generation-named"))
      << "latest would be another one by now";
  life.wanted().generation = "g1";
  const auto plan = make_plan(life.snapshot, life.policy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(testing::outline(*plan), "discard-n1, discard-n2, discard-n3");
  life.wanted().nodes = "n2";
  EXPECT_EQ(testing::outline(*make_plan(life.snapshot, life.policy)), "discard-n2");
}

TEST(PlanRestore, NoScheduleBeginsOne) {
  const auto need = RestorePolicy::operation().need(testing::cluster(), Policy());
  EXPECT_THAT(need.not_yet, HasSubstr("by an operator alone"));
}

TEST(PlanRestore, ASlowRateTakesLonger) {
  RestoreCase life(RestoreScope::kCluster);
  const auto quick = restore_step(*life.plan(), "restore-n1").expected;
  life.wanted().bytes_per_second = 1 << 20U;
  const auto slow = restore_step(*life.plan(), "restore-n1").expected;
  EXPECT_LT(quick.high_ms, slow.low_ms);
  EXPECT_GE(slow.low_ms, 4'000'000) << "4 GiB at 1 MiB/s";
}

TEST(PlanRestore, FactsAreReadBackAsTheyWereWritten) {
  RestoreCase life(RestoreScope::kCluster);
  life.facts.generation_problem = "none";
  const auto read = parse_restore_facts(to_json(life.facts));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, life.facts);
  const auto wrong = parse_restore_facts(Json::Object{{"nodes", "n1"}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().message, HasSubstr("nodes"));
}

struct RestoreRefusalCase {
  std::string name;
  RestoreScope scope = RestoreScope::kCluster;
  void (*change)(RestoreCase&) = nullptr;
  std::vector<std::string> codes;
  int voters = 3;
};

class RestoreRefusals : public ::testing::TestWithParam<RestoreRefusalCase> {};

TEST_P(RestoreRefusals, AreGivenWithAHint) {
  RestoreCase life(GetParam().scope, GetParam().voters);
  if (GetParam().voters >= 3) {
    ASSERT_THAT(life.refused(), IsEmpty());
  }
  GetParam().change(life);
  const auto plan = life.plan();
  ASSERT_FALSE(plan.has_value()) << testing::outline(*plan);
  EXPECT_EQ(testing::codes(plan.error()), GetParam().codes);
  for (const auto& refusal : plan.error()) {
    EXPECT_FALSE(refusal.hint.empty()) << refusal.code;
    EXPECT_FALSE(refusal.message.empty()) << refusal.code;
  }
}

const std::vector<RestoreRefusalCase>& restore_cases() {
  using enum RestoreScope;
  static const std::vector<RestoreRefusalCase> kRestoreRefusals{
      {"NoRepositoryNamed",
       kCluster,
       [](RestoreCase& c) { c.wanted().repository.clear(); },
       {"no-repository-named"}},
      {"NoAgent",
       kCluster,
       [](RestoreCase& c) {
         c.node(2).agent_url.clear();
         c.node(2).agent_answered = false;
         c.node(2).agent.reset();
       },
       {"n2:no-agent"}},
      {"AgentGone",
       kCluster,
       [](RestoreCase& c) {
         c.node(2).agent_answered = false;
         c.node(2).agent.reset();
       },
       {"n2:agent-gone"}},
      {"AnOlderAgent",
       kCluster,
       [](RestoreCase& c) { c.of(1).agent_problem = "it knows no backups"; },
       {"n1:agent-cannot-restore"}},
      {"NoRepository",
       kCluster,
       [](RestoreCase& c) { c.of(3).has_repository = false; },
       {"n3:no-repository"}},
      {"RepositoryUnreachable",
       kCluster,
       [](RestoreCase& c) { c.of(3).repository_problem = "no route to host"; },
       {"n3:repository-unreachable"}},
      {"RepositoriesDiffer",
       kCluster,
       [](RestoreCase& c) { c.of(3).repository_id = "r-2"; },
       {"repositories-differ"}},
      {"NoGeneration",
       kCluster,
       [](RestoreCase& c) {
         c.facts.generation = {};
         c.facts.generation_problem = "there is no backup of prod in main";
       },
       {"no-generation"}},
      {"GenerationUnknownToOne",
       kCluster,
       [](RestoreCase& c) { c.of(2).has_generation = false; },
       {"n2:no-generation"}},
      {"GenerationDamaged",
       kCluster,
       [](RestoreCase& c) { c.of(2).damage = "its manifest cannot be read"; },
       {"n2:generation-damaged"}},
      {"FailedCheck",
       kCluster,
       [](RestoreCase& c) { c.facts.generation.failed_check = "3 files are damaged"; },
       {"generation-damaged"}},
      {"AnotherCluster",
       kCluster,
       [](RestoreCase& c) { c.facts.generation.cluster = "staging"; },
       {"another-cluster"}},
      {"DiskTooSmall",
       kCluster,
       [](RestoreCase& c) { c.of(2).room = 4 * kGiB + (100 << 20U); },
       {"n2:disk-too-small"}},
      {"FormerFilesKept",
       kCluster,
       [](RestoreCase& c) { c.of(2).keeps_former = true; },
       {"n2:former-files-kept"}},
      {"NoServiceControl",
       kCluster,
       [](RestoreCase& c) { c.of(1).service_problem = "it cannot stop its server"; },
       {"n1:no-service-control"}},
      {"NotAllNodes",
       kCluster,
       [](RestoreCase& c) { c.wanted().nodes = "n1,n2"; },
       {"not-all-nodes"}},
      {"UnregisteredMember",
       kCluster,
       [](RestoreCase& c) { c.snapshot.unregistered = {"10.0.0.9:2113"}; },
       {"unregistered-member"}},
      {"AnotherDatabase",
       kCluster,
       [](RestoreCase& c) {
         c.node(2).wrong_identity = true;
         c.node(2).problem = "its database is db-9, registered was db-1";
       },
       {"n2:wrong-node"}},
      {"WrongCluster",
       kCluster,
       [](RestoreCase& c) { c.snapshot.wrong_cluster = "n1 and n2 are the same node"; },
       {"wrong-cluster"}},
      {"AgentBusy",
       kCluster,
       [](RestoreCase& c) { c.node(2).agent_work = {{.id = "op-1", .kind = "backup"}}; },
       {"n2:agent-busy"}},
      {"NotLookedAt",
       kCluster,
       [](RestoreCase& c) { c.facts.nodes.clear(); },
       {"n1:not-looked-at", "n2:not-looked-at", "n3:not-looked-at"}},
      {"NoNodeNamed", kNode, [](RestoreCase& c) { c.wanted().nodes.clear(); }, {"no-node-named"}},
      {"UnknownNode",
       kNode,
       [](RestoreCase& c) { c.wanted().nodes = "n3,n7"; },
       {"n7:unknown-node"}},
      {"Leader", kNode, [](RestoreCase& c) { c.wanted().nodes = "n1"; }, {"n1:is-leader"}},
      {"QuorumMargin", kNode, [](RestoreCase& c) { c.stop(2); }, {"n3:quorum-margin"}},
      {"NoLeader",
       kNode,
       [](RestoreCase& c) {
         c.node(1).role = Role::kOther;
         c.node(1).state = "Unknown";
       },
       {"no-leader", "n3:quorum-margin"}},
      {"TwoVoters", kNode, [](RestoreCase& c) { c.wanted().nodes = "n2"; }, {"quorum-margin"}, 2},
      {"AnotherDatabaseOfOne",
       kNode,
       [](RestoreCase& c) {
         c.node(3).wrong_identity = true;
         c.node(3).problem = "its database is db-9, registered was db-1";
       },
       {"n3:wrong-node"}},
      {"NegativeLimit",
       kNode,
       [](RestoreCase& c) { c.policy.gates.disk_reserve_bytes = -1; },
       {"policy-invalid"}},
  };
  return kRestoreRefusals;
}

INSTANTIATE_TEST_SUITE_P(All, RestoreRefusals, ::testing::ValuesIn(restore_cases()),
                         [](const auto& each) { return each.param.name; });

TEST(PlanRestore, AnotherDatabaseIsReplacedWhereThatIsSaid) {
  for (const auto scope : {RestoreScope::kCluster, RestoreScope::kNode}) {
    RestoreCase life(scope);
    life.node(3).wrong_identity = true;
    life.wanted().replace_database = true;
    const auto plan = life.plan();
    ASSERT_TRUE(plan.has_value()) << ::testing::PrintToString(life.refused());
    EXPECT_THAT(plan->notes, Contains(HasSubstr("n3: another database than the registered one")));
  }
}

}  // namespace
}  // namespace verger::planner
