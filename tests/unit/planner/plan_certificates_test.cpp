#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/certificates/certificate_steps.h"
#include "tests/unit/planner/certificate_change.h"

namespace verger::planner {
namespace {

using Given = testing::CertificateChange;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::facts_of;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanCertificates, OfTheSameRootChangeNodeByNodeTheLeaderLast) {
  const auto plan = Given().plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_EQ(testing::outline(*plan),
            "check-certificates, stage-n2, stage-n3, stage-n1, switch-n2, switch-n3, switch-n1, "
            "prove-leaf, watch-cluster");
  ASSERT_EQ(plan->stages.size(), 1U);
  const auto& rollout = plan->stages.front();
  EXPECT_TRUE(rollout.atomic);
  EXPECT_EQ(rollout.on_failure, FailureRule::kUndoAll);
  EXPECT_EQ(rollout.groups[1].size(), 3U) << "staging touches nothing live";
  EXPECT_EQ(rollout.groups[2].size(), 1U) << "one leaf after the other";
  EXPECT_THAT(plan->find_step("switch-n1")->reason, HasSubstr("leader comes last"));
  EXPECT_EQ(*plan->find_step("switch-n2")->parameters.at("serial").as_string(), "0b:n2");
  EXPECT_THAT(plan->forecast.front().row, HasSubstr("0a:n2 (until 2024-09-01T00:00:00Z) -> 0b:n2"));
}

TEST(PlanCertificates, OnlyTheFirstStepWaitsForTheHours) {
  const auto plan = Given().plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  std::vector<std::string> waiting;
  for (const auto& group : plan->stages.front().groups) {
    for (const auto& step : group) {
      if (std::ranges::find(step.gates, "maintenance-window", &Gate::name) != step.gates.end()) {
        waiting.push_back(step.id);
      }
      EXPECT_EQ(std::ranges::find(step.gates, "certificates", &Gate::name), step.gates.end())
          << "those that end soon are what is changed";
    }
  }
  EXPECT_THAT(waiting, ElementsAre("check-certificates"));
}

TEST(PlanCertificates, EachSwitchLeavesRoomForThoseBehindItForTheProofAndForTheWayBack) {
  const auto plan = Given().plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  const auto begins_within = [&plan](const char* id) {
    return *plan->find_step(id)->parameters.at("beginWithinMs").as_int();
  };
  // 600 s: less a proof of 15 s, the way back of 30 s, and 15 s for each switch.
  EXPECT_EQ(begins_within("switch-n2"), 510'000);
  EXPECT_EQ(begins_within("switch-n3"), 525'000);
  EXPECT_EQ(begins_within("switch-n1"), 540'000);
}

TEST(PlanCertificates, ANewRootIsTrustedEverywhereBeforeTheFirstLeafOfIt) {
  Given given;
  given.facts.new_roots = true;
  given.facts.old_roots_go = true;
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_EQ(testing::outline(*plan),
            "check-certificates, stage-n2, stage-n3, stage-n1, trust-n2, trust-n3, trust-n1, "
            "prove-trust, switch-n2, switch-n3, switch-n1, prove-leaf, watch-cluster, drop-n2, "
            "drop-n3, drop-n1, prove-drop");
  EXPECT_EQ(*plan->find_step("trust-n2")->parameters.at("phase").as_string(), "trust");
  EXPECT_EQ(*plan->find_step("drop-n2")->parameters.at("phase").as_string(), "drop");
  const auto& proven = *plan->find_step("prove-trust")->parameters.at("serials").as_object();
  EXPECT_EQ(*proven.at("n2").as_string(), "0a:n2") << "the old leaves are shown still";
  EXPECT_THAT(plan->notes, Contains(HasSubstr("new roots")));
}

TEST(PlanCertificates, OldRootsStayWhereThePolicySaysSo) {
  Given given;
  given.facts.new_roots = true;
  given.facts.old_roots_go = true;
  certificates_of(given.policy).drop_old_roots = false;
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_EQ(plan->find_step("drop-n1"), nullptr);
  EXPECT_THAT(plan->notes, Contains(HasSubstr("old roots stay trusted")));
}

TEST(PlanCertificates, OnlyANewRootIsTrustedWithoutAnotherLeaf) {
  Given given;
  given.facts.new_roots = true;
  for (auto& node : given.facts.nodes) {
    node.leaf_changes = false;
    node.roots_change = true;
  }
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_EQ(testing::outline(*plan),
            "check-certificates, stage-n2, stage-n3, stage-n1, trust-n2, trust-n3, trust-n1, "
            "prove-trust, watch-cluster");
}

TEST(PlanCertificates, ThoseMadeInTheRunAreObtainedFirst) {
  Given given;
  auto& wanted = certificates_of(given.policy);
  wanted = CertificatesPolicy{};
  wanted.authority = "company";
  for (auto& node : given.facts.nodes) {
    node.next_serial.clear();
    node.next_not_after.clear();
  }
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_EQ(testing::outline(*plan),
            "obtain-certificates | check-certificates, stage-n2, stage-n3, stage-n1, switch-n2, "
            "switch-n3, switch-n1, prove-leaf, watch-cluster");
  EXPECT_FALSE(plan->stages.front().atomic) << "no node is touched by it";
  const auto& obtain = *plan->find_step("obtain-certificates");
  EXPECT_EQ(*obtain.parameters.at("authority").as_string(), "company");
  const auto& n2 = *obtain.parameters.at("nodes").as_object()->at("n2").as_object();
  EXPECT_EQ(n2.at("dnsNames"), Json(Json::Array{"n2.example.com"}));
  EXPECT_FALSE(plan->find_step("switch-n2")->parameters.contains("serial"));
  EXPECT_THAT(plan->find_step("check-certificates")->parameters.at("source").text(),
              R"({"kind":"csr"})");
}

TEST(PlanCertificates, ANewCommonNameDoesNotWaitForNodesThatCallEachOtherDead) {
  const auto waits_for_all = [](const Plan& plan, std::string_view step) {
    const auto& gates = plan.find_step(step)->gates;
    return std::ranges::find(gates, "voters-alive", &Gate::name) != gates.end();
  };
  Given given;
  const auto same = given.plan();
  ASSERT_TRUE(same) << same.error().front().message;
  EXPECT_TRUE(waits_for_all(*same, "switch-n2"));
  EXPECT_TRUE(waits_for_all(*same, "switch-n3"));
  for (auto& node : given.facts.nodes) {
    node.next_common_name = "orders-node";
  }
  const auto renamed = given.plan();
  ASSERT_TRUE(renamed) << renamed.error().front().message;
  EXPECT_TRUE(waits_for_all(*renamed, "switch-n2")) << "nothing has changed before the first";
  EXPECT_FALSE(waits_for_all(*renamed, "switch-n3"));
  EXPECT_FALSE(waits_for_all(*renamed, "switch-n1"));
}

TEST(PlanCertificates, AReadOnlyReplicaIsAmongThem) {
  Given given;
  given.add_replica();
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_THAT(testing::outline(*plan), HasSubstr("switch-n2, switch-n3, switch-n4, switch-n1"));
  EXPECT_NE(std::ranges::find(plan->find_step("switch-n2")->gates, "replicas-alive", &Gate::name),
            plan->find_step("switch-n2")->gates.end());
  given.snapshot.nodes.back().answered = false;
  given.snapshot.nodes.back().alive = false;
  EXPECT_THAT(given.refused(), ElementsAre("n4:node-down"));
}

TEST(PlanCertificates, AnotherCommonNameIsForServersThatTakeIt) {
  Given given;
  for (auto& node : given.facts.nodes) {
    node.next_common_name = "orders-node";
  }
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_THAT(plan->notes, Contains(HasSubstr("becomes \"orders-node\"")));
  EXPECT_EQ(plan->find_step("check-certificates")->parameters.at("commonNameChanges"), Json(true));

  auto& wanted = certificates_of(given.policy);
  wanted = CertificatesPolicy{};
  wanted.authority = "company";
  wanted.common_name = "orders-node";
  given.snapshot.nodes[1].version = "22.10.5";
  const auto refused = given.plan();
  ASSERT_FALSE(refused);
  EXPECT_THAT(testing::codes(refused.error()), ElementsAre("n2:common-name-changed"));
  EXPECT_THAT(refused.error().front().message, HasSubstr("and it is 22.10.5"));
}

TEST(PlanCertificates, AWindowThatAllNodesDoNotFitIntoIsRefused) {
  Given given;
  certificates_of(given.policy).window_ms = 60'000;
  const auto plan = given.plan();
  ASSERT_FALSE(plan);
  EXPECT_THAT(testing::codes(plan.error()), ElementsAre("window-too-short"));
  EXPECT_THAT(plan.error().front().message, HasSubstr("3 nodes may take 90 s"));
  EXPECT_THAT(plan.error().front().message, HasSubstr("the window is 60 s"));
  certificates_of(given.policy).window_ms = 90'000;
  EXPECT_TRUE(given.plan());
}

TEST(PlanCertificates, ANodeThatWasSlowNeedsALongerWindow) {
  Given given;
  given.snapshot.preflight = Preflight{.refusals = {}, .notes = {}, .facts = to_json(given.facts)};
  const History slow{{{"n3", "certificate_switch", 300'000}}};
  const auto plan = make_plan(given.snapshot, given.policy, slow);
  ASSERT_FALSE(plan);
  EXPECT_THAT(testing::codes(plan.error()), ElementsAre("window-too-short"));
}

TEST(PlanCertificates, ANodeWithoutAnAgentIsRefused) {
  Given given;
  auto& n2 = given.snapshot.nodes[1];
  n2.agent_url.clear();
  n2.agent_answered = false;
  n2.agent.reset();
  const auto plan = given.plan();
  ASSERT_FALSE(plan);
  EXPECT_THAT(testing::codes(plan.error()), ElementsAre("n2:no-agent"));
  EXPECT_THAT(plan.error().front().message, HasSubstr("status, lint and proof work without"));
}

TEST(PlanCertificates, ANodeThatIsDownIsRefused) {
  Given given;
  given.snapshot.nodes[2].answered = false;
  given.snapshot.nodes[2].alive = false;
  EXPECT_THAT(given.refused(), Contains("n3:node-down"));
}

TEST(PlanCertificates, ANodeWithoutTlsIsRefused) {
  Given given;
  given.snapshot.nodes[1].url = "http://n2:2113";
  EXPECT_THAT(given.refused(), ElementsAre("n2:no-tls"));
}

TEST(PlanCertificates, WhereNothingChangesThereIsNoPlan) {
  Given given;
  for (auto& node : given.facts.nodes) {
    node.leaf_changes = false;
  }
  EXPECT_THAT(given.refused(), ElementsAre("nothing-to-change"));
  given.facts.nodes[1].leaf_changes = true;
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << "one node was left behind";
  EXPECT_EQ(plan->find_step("switch-n3"), nullptr);
  EXPECT_NE(plan->find_step("switch-n2"), nullptr);
  EXPECT_THAT(plan->forecast.back().row, HasSubstr("keeps its certificate 0a:n1"));
}

TEST(PlanCertificates, AnAgentThatCannotChangeTheFilesIsRefused) {
  Given given;
  given.facts.nodes[0].change_problem = "the directory /etc/node is not writable";
  const auto plan = given.plan();
  ASSERT_FALSE(plan);
  EXPECT_THAT(testing::codes(plan.error()), ElementsAre("n1:agent-cannot-change"));
  EXPECT_EQ(plan.error().front().message, "the directory /etc/node is not writable");
}

TEST(PlanCertificates, ASourceThatSaysTooLittleIsRefused) {
  Given given;
  auto& wanted = certificates_of(given.policy);
  for (const auto source :
       {CertificateSource::kCsr, CertificateSource::kFiles, CertificateSource::kPath}) {
    SCOPED_TRACE(to_string(source));
    wanted = CertificatesPolicy{};
    wanted.source = source;
    EXPECT_THAT(given.refused(), ElementsAre("source-incomplete"));
  }
  wanted.certificate_path = "certs/node.crt";
  EXPECT_THAT(given.refused(), ElementsAre("policy-invalid")) << "a path that is not absolute";
}

TEST(PlanCertificates, ANewAuthorityIsThatOfACommandAlone) {
  Given given;
  auto& wanted = certificates_of(given.policy);
  wanted = CertificatesPolicy{};
  wanted.authority = "company";
  wanted.new_authority = true;
  EXPECT_THAT(given.refused(), ElementsAre("policy-invalid")) << "it signs itself";
  wanted.sign_command = "step";
  EXPECT_THAT(given.refused(), ElementsAre("policy-invalid")) << "its root is known";
}

TEST(PlanCertificates, WhatThePreflightFoundIsRefusedTogetherWithTheRest) {
  Given given;
  given.snapshot.nodes[1].agent_url.clear();
  given.snapshot.nodes[1].agent_answered = false;
  given.snapshot.nodes[1].agent.reset();
  given.snapshot.preflight = Preflight{
      .refusals = {{"key-mismatch", "n3", "the key is of another certificate", "give it"}},
      .notes = {},
      .facts = {}};
  const auto plan = make_plan(given.snapshot, given.policy);
  ASSERT_FALSE(plan);
  EXPECT_THAT(testing::codes(plan.error()), ElementsAre("n2:no-agent", "n3:key-mismatch"));
  EXPECT_EQ(plan.error().back().hint, "give it");
}

TEST(PlanCertificates, ANoteOfThePreflightIsOneOfThePlan) {
  Given given;
  given.snapshot.preflight =
      Preflight{.refusals = {}, .notes = {"n2: it ends in 20 days"}, .facts = to_json(given.facts)};
  std::ranges::reverse(given.snapshot.nodes);
  const auto plan = make_plan(given.snapshot, given.policy);
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_EQ(plan->notes.back(), "n2: it ends in 20 days");
}

TEST(PlanCertificates, WithoutALookAtThemThereIsNoPlan) {
  Given given;
  EXPECT_THAT(testing::codes(make_plan(given.snapshot, given.policy).error()),
              ElementsAre("not-looked-at"));
}

TEST(PlanCertificates, HaveTheirHash) {
  Given given;
  given.facts.new_roots = true;
  given.facts.old_roots_go = true;
  const auto plan = given.plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_EQ(plan->hash, "332988e3ffc19bb8e62478cff2c19347358bc58c2757b964ff3da8b88e4aab6e");
  certificates_of(given.policy).window_ms = 500'000;
  EXPECT_NE(given.plan()->hash, plan->hash);
}

TEST(PlanCertificates, WhatAPersonApprovedSaysThatAStageIsAtomic) {
  auto plan = Given().plan();
  ASSERT_TRUE(plan) << plan.error().front().message;
  EXPECT_THAT(hashed_text(*plan), HasSubstr("\"atomic\":true"));
  plan->stages.front().atomic = false;
  EXPECT_THAT(hashed_text(*plan), Not(HasSubstr("atomic\":")))
      << "plans of earlier versions keep their hashes";
}

TEST(CertificateFacts, AreReadBackAsTheyWereWritten) {
  auto facts = facts_of(testing::cluster());
  facts.new_roots = true;
  facts.old_roots_go = true;
  facts.nodes[1].leaf_changes = false;
  facts.nodes[1].roots_change = true;
  facts.nodes[2].change_problem = "read only";
  facts.nodes[2].ip_addresses = {"10.0.0.3"};
  const auto read = parse_certificate_facts(to_json(facts));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, facts);
  const auto wrong =
      parse_certificate_facts(Json::Object{{"nodes", Json::Array{Json::Object{{"serial", 7}}}}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().message, HasSubstr("serial takes a text"));
}

}  // namespace
}  // namespace verger::planner
