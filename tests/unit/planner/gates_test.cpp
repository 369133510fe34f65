#include "planner/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Ticks later(const ClusterSnapshot& snapshot, std::int64_t hours) {
  return Ticks(snapshot.taken_at.value() + hours * 3'600 * kTicksPerSecond);
}

/// A gate that is closed, with what it measured.
struct Case {
  std::string name;
  Gate gate;
  void (*spoil)(ClusterSnapshot&);
  std::string code;
  std::string value;
  std::string limit;
};

class ClosedGate : public ::testing::TestWithParam<Case> {};

TEST_P(ClosedGate, TellsValueAndLimit) {
  auto snapshot = cluster();
  const auto open = evaluate(GetParam().gate, snapshot, "n2", 3'600'000);
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open.front().verdict, GateVerdict::kOpen) << open.front().reason;
  EXPECT_EQ(open.front().code, "");
  GetParam().spoil(snapshot);
  const auto states = evaluate(GetParam().gate, snapshot, "n2", 3'600'000);
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states.front().verdict, GateVerdict::kClosed);
  EXPECT_EQ(states.front().code, GetParam().code);
  EXPECT_THAT(states.front().value, HasSubstr(GetParam().value));
  EXPECT_THAT(states.front().limit, HasSubstr(GetParam().limit));
  EXPECT_FALSE(states.front().reason.empty());
  EXPECT_FALSE(states.front().hint.empty());
}

const Case kCases[] = {
    {"AgentThatCannotReadItsFiles",
     {"agents-answer", 0},
     [](ClusterSnapshot& s) { s.nodes[1].agent->files_problem = "/db: permission denied"; },
     "agent-blind",
     "permission denied",
     "reads them"},
    {"AgentThatGetsNoAnswerOfItsNode",
     {"agents-answer", 0},
     [](ClusterSnapshot& s) {
       s.nodes[1].agent.reset();
       s.nodes[1].agent_answered = true;
       s.nodes[1].agent_problem = "its agent gets no answer of the node: wrong root";
     },
     "agent-without-node",
     "sees no node",
     "sees its node"},
    {"AgentThatMayNotOperateItsNode",
     {"agents-answer", 0},
     [](ClusterSnapshot& s) { s.nodes[1].agent->node_problem = "401 Unauthorized"; },
     "agent-powerless",
     "401",
     "operates it"},
    {"ClockAhead",
     {"clocks", 60'000},
     [](ClusterSnapshot& s) { s.nodes[1].clock = ClockSkew{90'000, 200}; },
     "clock-skew",
     "90000 ms",
     "60000 ms"},
    {"ClockBehind",
     {"clocks", 60'000},
     [](ClusterSnapshot& s) { s.nodes[2].clock = ClockSkew{-3'600'000, 5'000}; },
     "clock-skew",
     "3600000 ms",
     "60000 ms"},
    {"CertificateEndsInTheMiddleOfTheStep",
     {"certificates", 0},
     [](ClusterSnapshot& s) {
       s.nodes[1].certificates = {{"0A", "node", Ticks(s.taken_at.value() + kTicksPerSecond)}};
     },
     "certificate-expires",
     "until ",
     "until "},
    {"CertificateEndsWithinTheMargin",
     {"certificates", 24 * 3'600'000},
     [](ClusterSnapshot& s) { s.nodes[1].certificates = {{"0A", "agent", later(s, 24)}}; },
     "certificate-expires",
     "until ",
     "until "},
    {"CertificateIsOver",
     {"certificates", 0},
     [](ClusterSnapshot& s) { s.nodes[1].certificates = {{"0A", "node", later(s, -1)}}; },
     "certificate-expired",
     "until ",
     "until "},
    {"LagGrows",
     {"lag-falling", 0},
     [](ClusterSnapshot& s) {
       s.nodes[0].writer_checkpoint += 8 << 20U;
       for (auto& each : s.nodes) {
         each.lag_before = each.name == "n3" ? 4 << 20U : 9 << 20U;
         each.lag_before_ms = 5'000;
       }
     },
     "lag-not-falling",
     "8 MiB",
     "below 4 MiB"},
    {"TheNodeIsBehind",
     {"node-current", 16 << 20U},
     [](ClusterSnapshot& s) { s.nodes[0].writer_checkpoint += 64 << 20U; },
     "lag",
     "64 MiB",
     "16 MiB"},
    {"TheNodesAgentIsSilent",
     {"node-current", 16 << 20U},
     [](ClusterSnapshot& s) {
       s.nodes[1].agent.reset();
       s.nodes[1].agent_answered = false;
     },
     "agent-silent",
     "silent",
     "answers"},
    {"TheNodeIsDown",
     {"node-current", 16 << 20U},
     [](ClusterSnapshot& s) { s.nodes[1].answered = false; },
     "node-down",
     "down",
     "up"},
    {"SomebodyBacksUp",
     {"no-other-work", 0},
     [](ClusterSnapshot& s) {
       s.nodes[2].agent_work = {
           {"b-1", "backup"}, {"v-1", "backup_verify"}, {"o-1", "set_priority"}};
     },
     "backup-running",
     "backup",
     "none"},
    {"IndexIsMerged",
     {"index-idle", 0},
     [](ClusterSnapshot& s) { s.nodes[1].index_merging = true; },
     "index-merging",
     "merging",
     "idle"},
    {"AgentIsTooOld",
     {"agents-answer", 0},
     [](ClusterSnapshot& s) { s.nodes[1].agent->version = "0.0.9"; },
     "agent-too-old",
     "0.0.9",
     "0.1"},
    {"QueryIsOutOfBounds",
     {"queries", 0},
     [](ClusterSnapshot& s) { s.queries = {{"latency", "0.9", "at most 0.5", "", false}}; },
     "query-out-of-bounds",
     "0.9",
     "at most 0.5"},
    {"QueryIsNotAnswered",
     {"queries", 0},
     [](ClusterSnapshot& s) { s.queries = {{"latency", "", "at most 0.5", "refused", false}}; },
     "query-unknown",
     "unknown",
     "at most 0.5"},
    {"TwoVotersCannotLoseOne",
     {"quorum-margin", 1},
     [](ClusterSnapshot& s) { s.nodes[2].alive = false; },
     "quorum-margin",
     "1 voter",
     "2 voters"},
};

INSTANTIATE_TEST_SUITE_P(Each, ClosedGate, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Gates, AChunkIsRewrittenByEachThreadBesideTheOldOnes) {
  auto snapshot = cluster();
  auto& facts = *snapshot.nodes[1].agent;
  facts.largest_chunk = std::int64_t{256} << 20U;
  facts.disk_free = std::int64_t{900} << 20U;
  const Gate gate{"disk", std::int64_t{256} << 20U};
  EXPECT_EQ(evaluate(gate, snapshot, "n2", 0, 2).front().verdict, GateVerdict::kOpen);
  const auto closed = evaluate(gate, snapshot, "n2", 0, 3).front();
  EXPECT_EQ(closed.verdict, GateVerdict::kClosed);
  EXPECT_EQ(closed.code, "disk");
  EXPECT_THAT(closed.reason, HasSubstr("rewriting 3 chunks side by side needs 768 MiB"));
}

TEST(Gates, TheIndexNeedsRoomForItsLargestTableOrMergeOnItsOwnDisk) {
  auto snapshot = cluster();
  auto& facts = *snapshot.nodes[1].agent;
  facts.index_disk_free = std::int64_t{1} << 30U;
  const Gate gate{"disk", std::int64_t{256} << 20U};
  EXPECT_EQ(evaluate(gate, snapshot, "n2").front().verdict, GateVerdict::kOpen)
      << "an agent that does not tell of tables";
  facts.largest_table = std::int64_t{700} << 20U;
  EXPECT_EQ(evaluate(gate, snapshot, "n2").front().verdict, GateVerdict::kOpen);
  facts.largest_table = std::int64_t{900} << 20U;
  EXPECT_THAT(evaluate(gate, snapshot, "n2").front().reason,
              HasSubstr("1 GiB free on the disk of the index; the largest table needs 900 MiB"));
  facts.largest_merge = std::int64_t{1200} << 20U;
  EXPECT_THAT(evaluate(gate, snapshot, "n2").front().reason, HasSubstr("the largest merge"));
  facts.index_disk_free = std::int64_t{2} << 30U;
  EXPECT_EQ(evaluate(gate, snapshot, "n2").front().verdict, GateVerdict::kOpen);
}

TEST(Gates, WhatOnlyReadsNeedsTheReserveAlone) {
  auto snapshot = cluster();
  auto& facts = *snapshot.nodes[1].agent;
  facts.largest_chunk = std::int64_t{256} << 20U;
  facts.largest_table = std::int64_t{1} << 40U;
  facts.index_disk_free = 0;
  facts.disk_free = std::int64_t{300} << 20U;
  const Gate gate{"disk-reserve", std::int64_t{256} << 20U};
  EXPECT_EQ(evaluate(gate, snapshot, "n2").front().verdict, GateVerdict::kOpen);
  facts.disk_free = std::int64_t{200} << 20U;
  EXPECT_THAT(evaluate(gate, snapshot, "n2").front().reason, HasSubstr("256 MiB must stay free"));
}

TEST(Gates, WhatIsReceivedAndNotProcessedOrNotIndexedIsALag) {
  auto snapshot = cluster();
  const auto& leader = snapshot.nodes[0];
  auto& node = snapshot.nodes[1];
  snapshot.nodes[0].last_commit_position = leader.writer_checkpoint - 100;
  node.chaser_checkpoint = leader.writer_checkpoint;
  node.last_commit_position = leader.last_commit_position;
  EXPECT_EQ(snapshot.lag(node), 0);
  node.chaser_checkpoint -= 3'000;
  EXPECT_EQ(snapshot.lag(node), 3'000);
  node.last_commit_position -= 5'000;
  EXPECT_EQ(snapshot.lag(node), 5'000);
  EXPECT_EQ(evaluate({"lag-below", 4'000}, snapshot, "n2").front().verdict, GateVerdict::kClosed);
  // A version that does not tell.
  node.chaser_checkpoint = -1;
  node.last_commit_position = -1;
  EXPECT_EQ(snapshot.lag(node), 0);
}

TEST(Gates, ALagThatFallsOrIsNoiseIsNone) {
  auto snapshot = cluster();
  snapshot.nodes[0].writer_checkpoint += 8 << 20U;
  for (auto& node : snapshot.nodes) {
    node.lag_before = 9 << 20U;
  }
  EXPECT_EQ(evaluate({"lag-falling", 0}, snapshot, "n2").front().verdict, GateVerdict::kOpen);
  snapshot = cluster();
  snapshot.nodes[0].writer_checkpoint += 500'000;
  snapshot.nodes[1].lag_before = 0;
  EXPECT_EQ(evaluate({"lag-falling", 0}, snapshot, "n2").front().verdict, GateVerdict::kOpen);
  // Beside a leader that writes a lot: as far behind as before, with all that the leader had then.
  snapshot = cluster();
  snapshot.nodes[0].writer_checkpoint += 8 << 20U;
  snapshot.nodes[1].lag_before = 8 << 20U;
  EXPECT_EQ(evaluate({"lag-falling", 0}, snapshot, "n2").front().verdict, GateVerdict::kClosed);
  snapshot.nodes[1].leader_before = snapshot.nodes[1].writer_checkpoint;
  EXPECT_EQ(evaluate({"lag-falling", 0}, snapshot, "n2").front().verdict, GateVerdict::kOpen);
}

TEST(Gates, AnUnregisteredVoterCountsForTheQuorum) {
  auto snapshot = cluster(2);
  EXPECT_EQ(evaluate({"quorum-margin", 0}, snapshot, "n2").front().verdict, GateVerdict::kOpen);
  snapshot.unregistered_voters = 1;
  EXPECT_EQ(snapshot.quorum(), 2U);
  snapshot = cluster(3);
  snapshot.unregistered_voters = 1;  // left over by a node that was replaced
  EXPECT_EQ(snapshot.quorum(), 2U);
  EXPECT_EQ(evaluate({"quorum-margin", 0}, snapshot, "n2").front().verdict, GateVerdict::kOpen);
}

TEST(Gates, WhatAQuestionMayHaveCostIsNotHeldAgainstAClock) {
  auto snapshot = cluster();
  snapshot.nodes[1].clock = ClockSkew{62'000, 5'000};
  EXPECT_EQ(evaluate({"clocks", 60'000}, snapshot, "n2").front().verdict, GateVerdict::kOpen);
}

TEST(Gates, RefuseAPlanToo) {
  auto snapshot = cluster();
  snapshot.nodes[1].clock = ClockSkew{600'000, 10};
  snapshot.nodes[2].agent_work = {{"b-1", "backup"}};
  snapshot.queries = {{"latency", "0.9", "at most 0.5", "", false}};
  Policy policy;
  policy.gates.queries = {{"latency", "http://127.0.0.1:9090", "q", "", "0.5"}};
  const auto plan = make_plan(snapshot, policy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(codes(plan.error()),
              ElementsAre("query-out-of-bounds", "n2:clock-skew", "n3:backup-running"));
}

TEST(Gates, RaiseAlertsInMinutesWhereTheyDoNotOpenByThemselves) {
  RunLimits limits;
  EXPECT_EQ(alert_after_ms("disk", limits), 5 * 60'000);
  EXPECT_EQ(alert_after_ms("no-scavenge-running", limits), 60 * 60'000);
  EXPECT_EQ(alert_after_ms("queries:write-latency", limits), 30 * 60'000);
  EXPECT_EQ(alert_after_ms("a gate of tomorrow", limits), 15 * 60'000);
  limits.gate_deadline_ms = 7'000;
  EXPECT_EQ(alert_after_ms("disk", limits), 7'000) << "the policy's time is for all gates";
  EXPECT_EQ(alert_after_ms("maintenance-window", limits), 0) << "but closed windows are no delay";
}

}  // namespace
}  // namespace verger::planner
