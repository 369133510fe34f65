// Plans of backups: whose files are copied, what is done after that, and why there is no plan.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/backup/backup_order.h"
#include "planner/operations.h"
#include "tests/unit/planner/backup_plans.h"

namespace verger::planner {
namespace {

using testing::BackupPlans;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kMiB = std::int64_t{1} << 20U;

const Step& step_of(const Plan& plan, std::string_view id) {
  const auto* found = plan.find_step(id);
  EXPECT_NE(found, nullptr) << id;
  static const Step kNone;
  return found == nullptr ? kNone : *found;
}
std::string text_of(const Step& step, std::string_view name) {
  const auto found = step.parameters.find(name);
  return found == step.parameters.end() ? "missing" : found->second.text();
}

TEST(PlanBackup, CopiesAFollowerAndVerifiesIt) {
  BackupPlans plans;
  const auto plan = plans.plan();
  ASSERT_TRUE(plan.has_value()) << plans.outlined();
  EXPECT_EQ(outline(*plan), "backup-n2 | verify-n2");
  const auto& copy = step_of(*plan, "backup-n2");
  EXPECT_EQ(copy.kind, "backup_create");
  EXPECT_EQ(copy.node, "n2");
  EXPECT_EQ(text_of(copy, "repository"), "\"main\"");
  EXPECT_EQ(text_of(copy, "repositoryId"), "\"repository-1\"");
  EXPECT_EQ(text_of(copy, "full"), "false");
  EXPECT_EQ(text_of(copy, "digests"), "\"logical\"");
  EXPECT_TRUE(copy.expected.is_known());
  EXPECT_EQ(text_of(step_of(*plan, "verify-n2"), "made"), "\"n2\"");
  EXPECT_THAT(plan->notes, Contains(HasSubstr("nothing proves that it can be restored")));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("no older backup is deleted")));
}

// --- whose files are copied

TEST(BackupSources, TheFollowerWithTheNewestBackupComesFirst) {
  BackupPlans plans;
  plans.add_backup("n2", true);
  plans.add_backup("n3", true);
  EXPECT_EQ(plans.outlined(), "backup-n3 | verify-n3");
}

TEST(BackupSources, AReadOnlyReplicaTheLeaderOrAny) {
  BackupPlans plans;
  plans.wanted().source = BackupSource::kReplica;
  EXPECT_THAT(plans.refused(), Contains("no-up-to-date-source"));
  plans.add_replica();
  EXPECT_EQ(plans.outlined(), "backup-n4 | verify-n4");
  plans.wanted().source = BackupSource::kLeader;
  EXPECT_EQ(plans.outlined(), "backup-n1 | verify-n1");
  EXPECT_THAT(plans.plan()->notes, Contains(HasSubstr("n1 leads: its disk is read")));
  plans.wanted().source = BackupSource::kAny;
  EXPECT_EQ(plans.outlined(), "backup-n4 | verify-n4");
  plans.wanted().copies = 4;
  EXPECT_EQ(plans.outlined(),
            "backup-n4 | backup-n2 | backup-n3 | backup-n1 | verify-n4 | verify-n2 | verify-n3 | "
            "verify-n1");
}

TEST(BackupSources, NamedNodesAreTakenInTheirOrderRegardlessOfTheirRole) {
  BackupPlans plans;
  plans.wanted().nodes = "n1, n3";
  EXPECT_EQ(plans.outlined(), "backup-n1 | verify-n1");
  plans.node("n1").answered = false;
  plans.node("n1").role = Role::kOther;
  plans.node("n3").role = Role::kLeader;
  plans.node("n3").sees_leader = "instance-3";
  plans.node("n2").sees_leader = "instance-3";
  EXPECT_EQ(plans.outlined(), "backup-n3 | verify-n3");
  plans.wanted().nodes = "n9";
  EXPECT_THAT(plans.refused(), Contains("unknown-node"));
}

TEST(BackupSources, ANodeThatIsBehindIsNone) {
  BackupPlans plans;
  plans.node("n1").writer_checkpoint += 64 * kMiB;
  plans.node("n3").writer_checkpoint += 64 * kMiB;
  EXPECT_EQ(plans.outlined(), "backup-n3 | verify-n3");
  EXPECT_THAT(plans.plan()->notes, Contains(HasSubstr("n2 is not copied (lag)")));
  plans.node("n3").writer_checkpoint -= 64 * kMiB;
  EXPECT_THAT(plans.refused(), ElementsAre("no-up-to-date-source", "n2:lag", "n3:lag"));
}

TEST(BackupSources, ANodeThatIsNotConnectedIsNone) {
  BackupPlans plans;
  plans.node("n2").sees_leader = "";
  EXPECT_EQ(plans.outlined(), "backup-n3 | verify-n3");
  plans.node("n3").role = Role::kOther;
  plans.node("n3").state = "CatchingUp";
  EXPECT_THAT(plans.refused(),
              ElementsAre("no-up-to-date-source", "n2:leader-disputed", "n3:node-unsettled"));
}

TEST(BackupSources, AnotherNodeThatIsDownIsNoReasonToGoWithout) {
  BackupPlans plans;
  auto& down = plans.node("n3");
  down.answered = false;
  down.agent_answered = false;
  down.agent.reset();
  plans.agent("n3").problem_code = "agent-gone";
  plans.agent("n3").problem = "its agent does not answer";
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2");
}

TEST(BackupSources, WithoutALeaderThereIsNone) {
  BackupPlans plans;
  plans.node("n1").role = Role::kOther;
  plans.wanted().source = BackupSource::kAny;
  EXPECT_THAT(plans.refused(), Contains("n2:no-leader"));
}

TEST(BackupSources, ACopyOfAMajorityIsOfDifferentNodesOneAfterTheOther) {
  BackupPlans plans;
  plans.wanted().copies = 2;
  plans.wanted().verify = false;
  EXPECT_EQ(plans.outlined(), "backup-n2 | backup-n3");
  EXPECT_THAT(plans.plan()->notes, Contains(HasSubstr("that is a majority of the voters")));
  plans.wanted().copies = 3;
  EXPECT_THAT(plans.refused(), ElementsAre("not-enough-sources"));
  plans.wanted().source = BackupSource::kAny;
  EXPECT_EQ(plans.outlined(), "backup-n2 | backup-n3 | backup-n1");
}

TEST(BackupSources, OneWithAScavengeIsNoneUnlessThatMayBeStopped) {
  BackupPlans plans;
  plans.node("n2").scavenge_running = true;
  plans.node("n2").running.scavenge_id = "s-1";
  EXPECT_EQ(plans.outlined(), "backup-n3 | verify-n3");
  plans.wanted().nodes = "n2";
  const auto refused = plans.plan();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(testing::codes(refused.error()),
              ElementsAre("no-up-to-date-source", "n2:scavenge-running"));
  EXPECT_THAT(refused.error().back().hint, HasSubstr("interrupt_scavenge: true"));
  plans.wanted().interrupt_scavenge = true;
  EXPECT_EQ(plans.outlined(), "hold-n2 | backup-n2 | release-n2 | verify-n2");
  const auto plan = plans.plan();
  EXPECT_EQ(step_of(*plan, "release-n2").node, "") << "it is done although the node is skipped";
  EXPECT_EQ(text_of(step_of(*plan, "release-n2"), "of"), "\"n2\"");
  plans.node("n2").scavenge_running.reset();
  EXPECT_THAT(plans.refused(), Contains("n2:scavenge-unknown"));
}

TEST(BackupSources, OfADiskSnapshotMayBeScavenged) {
  BackupPlans plans;
  plans.wanted().mode = BackupMode::kSnapshot;
  plans.wanted().nodes = "n2";
  plans.node("n2").scavenge_running = true;
  plans.node("n2").running.scavenge_id = "s-1";
  plans.agent("n2").snapshot_problem = "it has no --snapshot-command";
  const auto refused = plans.plan();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(testing::codes(refused.error()),
              ElementsAre("no-up-to-date-source", "n2:no-snapshots"));
  EXPECT_THAT(refused.error().back().message, HasSubstr("--snapshot-command"));
  plans.agent("n2").snapshot_problem.clear();
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2");
  const auto plan = plans.plan();
  const auto& step = step_of(*plan, "backup-n2");
  EXPECT_EQ(text_of(step, "mode"), "\"snapshot\"");
  EXPECT_THAT(step.act, HasSubstr("disk snapshot"));
  EXPECT_TRUE(std::ranges::none_of(step.gates, [](const Gate& gate) {
    return gate.name == "no-scavenge-on-node" || gate.name == "no-other-work";
  }));
  EXPECT_TRUE(std::ranges::any_of(step.gates,
                                  [](const Gate& gate) { return gate.name == "node-current"; }));
  // There is nothing to stop.
  plans.wanted().interrupt_scavenge = true;
  EXPECT_THAT(plans.refused(), Contains("policy-invalid"));
}

// --- the stopped server

TEST(PlanBackup, OfAStoppedServerNeedsItsAgentAndNeverStopsTheLeader) {
  BackupPlans plans;
  plans.wanted().mode = BackupMode::kOffline;
  EXPECT_THAT(plans.refused(), Contains("n2:offline-needs-service-control"));
  for (auto& node : plans.snapshot.nodes) {
    node.agent->service_control = true;
  }
  const auto plan = plans.plan();
  ASSERT_TRUE(plan.has_value()) << plans.outlined();
  const auto& step = step_of(*plan, "backup-n2");
  EXPECT_EQ(text_of(step, "mode"), "\"offline\"");
  EXPECT_EQ(text_of(step, "serviceDeadlineMs"), "3600000");
  EXPECT_THAT(step.gates, Contains(Gate{"quorum-margin", 1}));
  EXPECT_THAT(step.gates, Contains(Gate{"not-leader", 0}));
  EXPECT_EQ(plan->stages.front().on_failure, FailureRule::kUndoAll);
  EXPECT_FALSE(step.parameters.contains("healFilter"));
  plans.wanted().heal_existence_filter = true;
  const auto healing = plans.plan();
  ASSERT_TRUE(healing.has_value());
  EXPECT_EQ(text_of(step_of(*healing, "backup-n2"), "healFilter"), "true");
  plans.wanted().nodes = "n1";
  EXPECT_THAT(plans.refused(), Contains("n1:offline-leader"));
  plans.wanted().nodes = "n2";
  plans.node("n3").answered = false;
  EXPECT_THAT(plans.refused(), Contains("n2:quorum-margin"));
}

// --- full and differential

TEST(PlanBackup, EachSoManyThReadsEverything) {
  BackupPlans plans;
  plans.wanted().nodes = "n2";
  plans.wanted().full_every = 3;
  const auto full = [&plans] { return text_of(step_of(*plans.plan(), "backup-n2"), "full"); };
  EXPECT_EQ(full(), "true") << "there is none";
  plans.add_backup("n2", true);
  EXPECT_EQ(full(), "false");
  plans.add_backup("n2");
  EXPECT_EQ(full(), "false");
  plans.add_backup("n3");  // of another node: it does not count
  plans.add_backup("n2");
  EXPECT_EQ(full(), "true");
  std::erase_if(plans.facts.generations, [](const auto& each) { return each.parent.empty(); });
  plans.facts.generations.pop_back();
  EXPECT_EQ(full(), "true") << "the full one was deleted";
  plans.wanted().full_every = 0;
  EXPECT_EQ(full(), "false");
}

TEST(PlanBackup, OfARestoredNodeReadsEverythingAndSaysSo) {
  BackupPlans plans;
  plans.wanted().nodes = "n2";
  auto& latest = plans.add_backup("n2", true);
  EXPECT_EQ(text_of(step_of(*plans.plan(), "backup-n2"), "full"), "false");
  EXPECT_THAT(plans.plan()->notes, Not(Contains(HasSubstr("was restored or cut"))));
  latest.end_position = 2'000'000;
  EXPECT_EQ(text_of(step_of(*plans.plan(), "backup-n2"), "full"), "true");
  EXPECT_THAT(plans.plan()->notes, Contains(HasSubstr("n2 was restored or cut since its latest")));
  latest.end_position = 900'000;
  latest.epoch_number = 4;
  EXPECT_EQ(text_of(step_of(*plans.plan(), "backup-n2"), "full"), "true");
  latest.epoch_number = 3;
  latest.epoch_id = "one";
  plans.node("n2").epoch_id = "another";
  EXPECT_EQ(text_of(step_of(*plans.plan(), "backup-n2"), "full"), "true");
}

// --- drills

TEST(PlanBackup, IsDrilledEachSoManyTimes) {
  BackupPlans plans;
  plans.wanted().nodes = "n2";
  plans.wanted().drill_every = 3;
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2 | drill-n2") << "none was";
  auto& first = plans.add_backup("n2", true);
  first.drilled_at = first.finished_at;
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2 | drill-n2") << "it did not pass";
  first.drill_passed = true;
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2");
  plans.add_backup("n2");
  plans.add_backup("n2");
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2 | drill-n2");
}

TEST(PlanBackup, IsDrilledWhereThereIsAScratchDirectory) {
  BackupPlans plans;
  plans.wanted().drill_every = 1;
  plans.agent("n2").drill_problem = "it has no --backup-scratch";
  const auto plan = plans.plan();
  ASSERT_TRUE(plan.has_value()) << plans.outlined();
  EXPECT_EQ(step_of(*plan, "drill-n2").node, "n1");
  plans.agent("n1").drill_problem = "its disk is full";
  plans.agent("n3").drill_problem = "it has no --backup-scratch";
  EXPECT_THAT(plans.refused(), ElementsAre("n1:no-scratch", "n2:no-scratch", "n3:no-scratch"));
}

// --- what is kept

TEST(PlanBackup, DeletesOlderOnesOfEachNodeAfterTheNewOne) {
  BackupPlans plans;
  plans.wanted().nodes = "n2";
  plans.wanted().keep_daily = 7;
  plans.add_backup("n3", true);
  const auto plan = plans.plan();
  ASSERT_TRUE(plan.has_value()) << plans.outlined();
  EXPECT_EQ(outline(*plan), "backup-n2 | verify-n2 | retain-n2, retain-n3");
  const auto& step = step_of(*plan, "retain-n3");
  EXPECT_EQ(step.node, "n2") << "whose agent does it";
  EXPECT_EQ(text_of(step, "of"), "\"n3\"");
  EXPECT_EQ(text_of(step, "after"), R"(["n2"])");
  EXPECT_EQ(text_of(step, "keepDaily"), "7");
}

// --- the other tasks

TEST(PlanBackup, VerifiesOrDrillsTheLatestOfEachNodeOrWhatIsNamed) {
  BackupPlans plans;
  plans.wanted().task = BackupTask::kVerify;
  EXPECT_THAT(plans.refused(), ElementsAre("no-backup"));
  plans.add_backup("n2", true);
  plans.add_backup("n2");
  plans.add_backup("n3", true);
  EXPECT_EQ(plans.outlined(), "verify-g2 | verify-g3");
  plans.wanted().nodes = "n2";
  EXPECT_EQ(plans.outlined(), "verify-g2");
  plans.wanted().nodes = "";
  plans.wanted().generations = "g1";
  plans.wanted().task = BackupTask::kDrill;
  EXPECT_EQ(plans.outlined(), "drill-g1");
  EXPECT_EQ(step_of(*plans.plan(), "drill-g1").node, "n2");
  plans.wanted().generations = "g1, g9";
  EXPECT_THAT(plans.refused(), ElementsAre("unknown-generation"));
}

TEST(PlanBackup, DeletesByNameOrByTheRules) {
  BackupPlans plans;
  plans.wanted().task = BackupTask::kDelete;
  EXPECT_THAT(plans.refused(), Contains("policy-invalid"));
  plans.add_backup("n2", true).damage = "its manifest is cut";
  plans.add_backup("n2");
  plans.wanted().generations = "g1,g2";
  EXPECT_EQ(plans.outlined(), "retain-named");
  EXPECT_EQ(text_of(step_of(*plans.plan(), "retain-named"), "generations"), R"(["g1","g2"])");
  plans.wanted().generations = "";
  plans.wanted().keep_last = 1;
  EXPECT_EQ(plans.outlined(), "retain-n2");
  EXPECT_EQ(text_of(step_of(*plans.plan(), "retain-n2"), "after"), "missing");
}

// --- refusals

TEST(PlanBackupRefused, WithoutARepositoryOrWithAWrongNumber) {
  BackupPlans plans;
  plans.wanted().repository = "";
  EXPECT_THAT(plans.refused(), ElementsAre("no-repository"));
  plans.wanted().repository = "/mnt/backup";
  EXPECT_THAT(plans.refused(), ElementsAre("policy-invalid"));
  plans.wanted().repository = "main";
  plans.wanted().copies = 0;
  EXPECT_THAT(plans.refused(), Contains("policy-invalid"));
  plans.wanted().copies = 2;
  plans.wanted().nodes = "n2";
  EXPECT_THAT(plans.refused(), Contains("policy-invalid"));
  plans.wanted().copies = 1;
  plans.wanted().generations = "g1";
  EXPECT_THAT(plans.refused(), Contains("policy-invalid"));
  plans.wanted().generations = "";
  plans.policy.limits.service_deadline_ms = 0;
  EXPECT_THAT(plans.refused(), ElementsAre("policy-invalid"));
}

TEST(PlanBackupRefused, WithoutAnAgentOrARepositoryThatItCanUse) {
  BackupPlans plans;
  plans.wanted().nodes = "n2,n3";
  plans.node("n2").agent_url = "";
  auto& agent = plans.agent("n3");
  agent.problem_code = "repository-unreachable";
  agent.problem = "s3://backup: 403";
  agent.hint = "look at its credentials";
  EXPECT_THAT(plans.refused(),
              ElementsAre("no-up-to-date-source", "n2:no-agent", "n3:repository-unreachable"));
}

TEST(PlanBackupRefused, WhereAgentsMeanDifferentRepositories) {
  BackupPlans plans;
  plans.agent("n3").repository_id = "repository-2";
  EXPECT_THAT(plans.refused(), ElementsAre("repositories-differ"));
  plans.agent("n3").repository_id = "";
  EXPECT_THAT(plans.refused(), ElementsAre("repositories-differ")) << "it is not mounted there";
  plans.wanted().nodes = "n2";
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2");
  plans.wanted().nodes = "";
  for (auto& each : plans.facts.agents) {
    each.repository_id = "";
  }
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2");
  EXPECT_THAT(plans.plan()->notes, Contains(HasSubstr("checked from the second backup on")));
}

TEST(PlanBackupRefused, WhereTheRepositoryHasNoRoom) {
  BackupPlans plans;
  plans.agent("n2").free_bytes = std::int64_t{4} << 30U;
  plans.wanted().nodes = "n2";
  EXPECT_THAT(plans.refused(), ElementsAre("n2:repository-full")) << "4 GiB and the reserve";
  plans.add_backup("n2", true);
  EXPECT_EQ(plans.outlined(), "backup-n2 | verify-n2") << "most of it is there";
  plans.agent("n2").free_bytes = kMiB;
  EXPECT_THAT(plans.refused(), ElementsAre("n2:repository-full"));
}

TEST(PlanBackupRefused, WhereAnotherClusterHasANodeOfThatName) {
  BackupPlans plans;
  plans.add_backup("n2", true).cluster = "test";
  EXPECT_THAT(plans.refused(), ElementsAre("n2:node-name-taken"));
}

TEST(PlanBackupRefused, WhileAnotherBackupOrAnUnknownJobIsUnderWay) {
  BackupPlans plans;
  plans.node("n3").agent_work = {{"b-1", "backup"}};
  EXPECT_THAT(plans.refused(), ElementsAre("n3:backup-running"));
}

TEST(PlanBackupRefused, WithoutALookAtTheRepositories) {
  BackupPlans plans;
  const auto made = make_plan(plans.snapshot, plans.policy);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(testing::codes(made.error()), Contains("not-looked-at"));
  plans.snapshot.preflight =
      Preflight{.refusals = {}, .notes = {}, .facts = Json::Object{{"agents", "all"}}};
  const auto unreadable = make_plan(plans.snapshot, plans.policy);
  ASSERT_FALSE(unreadable.has_value());
  EXPECT_THAT(testing::codes(unreadable.error()), Contains("preflight-unreadable"));
}

TEST(BackupFacts, AreTheSameAfterTheirJson) {
  BackupPlans plans;
  plans.add_backup("n2", true).drill_passed = true;
  plans.agent("n1").problem = "no";
  const auto read = parse_backup_facts(to_json(plans.facts));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, plans.facts);
}

TEST(BackupFields, ListsAreReadWithoutTheirSpaces) {
  EXPECT_THAT(detail::listed(" n2 ,n3,, "), ElementsAre("n2", "n3"));
  EXPECT_THAT(detail::listed(""), IsEmpty());
}

TEST(BackupFields, AnAgeIsAskedForByTheOperation) {
  BackupPlans plans;
  plans.wanted().max_age_ms = 5;
  EXPECT_EQ(operation_of(plans.policy)->max_age_ms(plans.policy), 5);
}

}  // namespace
}  // namespace verger::planner
