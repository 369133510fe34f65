// The table "Answers that mislead" of node-interface.md, 8.2, row by row: none of them may come out
// as done.
#include <gtest/gtest.h>

#include "nodeagent/client/answers.h"
#include "nodeagent/client/judge.h"
#include "tests/unit/nodeagent_client/recordings.h"

namespace verger::client::test {
namespace {

const NodeDialect kDialect = NodeDialect::of({24, 6, 0});

std::vector<Recording> answers(const std::string& method, const std::string& path, int status) {
  auto all = all_recordings();
  std::erase_if(all, [&](const Recording& r) {
    return r.is_cut || r.method != method || r.path.substr(0, r.path.find('?')) != path ||
           r.response.status != status;
  });
  EXPECT_FALSE(all.empty());
  return all;
}

TEST(MisleadingAnswer, ReloadSays200BeforeItReadsTheFiles) {
  const auto all = answers("POST", "/admin/reloadconfig", 200);
  EXPECT_GE(all.size(), 25U);  // with thirteen sets that were refused
  for (const auto& recording : all) {
    EXPECT_TRUE(parse_answer_queued(recording.response).unknown()) << recording.name();
  }
}

TEST(MisleadingAnswer, ResignAndPrioritySay200WhereNothingHappens) {
  for (const auto* path :
       {"/admin/node/resign", "/admin/node/priority/0", "/admin/node/priority/9"}) {
    for (const auto& recording : answers("POST", path, 200)) {
      EXPECT_TRUE(parse_answer_queued(recording.response).unknown()) << recording.name();
    }
  }
}

TEST(MisleadingAnswer, AStartedScavengeCanFailAtOnceOrHaveNothingToDo) {
  for (const auto& recording : answers("POST", "/admin/scavenge", 200)) {
    const auto outcome = parse_answer_start_scavenge(recording.response, kDialect);
    EXPECT_TRUE(outcome.unknown()) << recording.name();
    EXPECT_TRUE(outcome.value.has_value() && outcome.value->id.size() == 36) << recording.name();
  }
}

Outcome<ScavengeEnd> end_in(const std::string& file, const std::string& title) {
  const auto recording = recordings_titled(file, title).at(0);
  const auto events = parse_answer_scavenges(recording.response);
  EXPECT_TRUE(events.done()) << recording.name();
  EXPECT_FALSE(events.value->empty());
  return end_of_scavenge(*events.value, events.value->front().scavenge_id);
}

TEST(MisleadingAnswer, SuccessWithNoChunkTouched) {
  const auto untouched = end_in("scavenge-lifecycle.json", "log of the syncOnly run");
  EXPECT_TRUE(untouched.unknown());
  EXPECT_EQ(untouched.code, "untouched");
  EXPECT_EQ(untouched.value->result, "Success");
  const auto worked = end_in("scavenge-results.json", "two threads: its log");
  EXPECT_TRUE(worked.done()) << worked.why;
  EXPECT_GT(worked.value->entries, 0);
}

TEST(MisleadingAnswer, InterruptedByARestartOrByAnError) {
  for (const auto* title :
       {"killed during a slow run: its log", "SIGTERM during a slow run: its log"}) {
    const auto restarted = end_in("scavenge-results.json", title);
    EXPECT_TRUE(restarted.unknown());
    EXPECT_EQ(restarted.code, "restarted") << restarted.why;
    EXPECT_EQ(restarted.value->result, "Interrupted");
  }
  const auto errored = end_in("scavenge-results.json", "threads=6 (above the pool): its log");
  EXPECT_TRUE(errored.unknown());
  EXPECT_EQ(errored.code, "errored");
  EXPECT_EQ(errored.value->result, "Interrupted");
  EXPECT_TRUE(errored.why.contains("scavenge backend pool")) << errored.why;
}

TEST(MisleadingAnswer, StopSays404WhileStartStillSaysAlreadyRunning) {
  for (const auto& recording : answers("DELETE", "/admin/scavenge/current", 404)) {
    const auto outcome = parse_answer_stop(recording.response, kDialect);
    EXPECT_TRUE(outcome.unknown()) << recording.name();
    EXPECT_EQ(outcome.code, "nothing_to_stop");
  }
}

TEST(MisleadingAnswer, StopGets408AndTheRunWasStopped) {
  // Not in the recordings as an exchange: node-interface.md, 1.7.
  const http::Response late{.status = 408, .reason = "Server was unable to handle request in time"};
  EXPECT_EQ(parse_answer_stop(late, kDialect).code, "late");
  EXPECT_TRUE(parse_answer_stop(late, kDialect).unknown());
}

TEST(MisleadingAnswer, AnAppendSays200AndDidNothing) {
  const auto recording = recordings_titled("atom.json", "append, expected -3").at(0);
  EXPECT_EQ(recording.response.status, 200);
  EXPECT_TRUE(parse_answer_append(recording.response).unknown());
}

TEST(MisleadingAnswer, GossipAndInfoSay401ForAWrongPassword) {
  for (const auto& recording : answers("GET", "/gossip", 401)) {
    EXPECT_EQ(parse_answer_gossip(recording.response).code, "credentials_refused");
    EXPECT_TRUE(parse_answer_gossip(recording.response).unknown());
  }
  for (const auto& recording : answers("GET", "/info", 401)) {
    EXPECT_EQ(parse_answer_info(recording.response).code, "credentials_refused");
    EXPECT_TRUE(parse_answer_info(recording.response).unknown());
  }
}

TEST(MisleadingAnswer, ANodeThatShutsDownIsAliveAndLeaderForTheOthers) {
  const auto recording = recordings_titled("node-facts.json", "gossip of a follower").at(0);
  const auto gossip = parse_answer_gossip(recording.response);
  ASSERT_TRUE(gossip.done());
  int others = 0;
  int itself = 0;
  for (const auto& member : gossip.value->members) {
    const auto judged = entry_of(*gossip.value, member.instance_id);
    ASSERT_TRUE(judged.value.has_value());
    if (judged.done()) {
      ++itself;
    } else {
      EXPECT_EQ(judged.code, "not_itself");
      ++others;
    }
  }
  EXPECT_EQ(itself, 1);
  EXPECT_EQ(others, 2);
  auto leaving = *gossip.value;
  for (auto& member : leaving.members) {
    member.state = api::NodeState::kShuttingDown;
  }
  EXPECT_EQ(own_entry(leaving).code, "unsettled");
}

TEST(MisleadingAnswer, LiveSays204OnAVoterWithoutALeader) {
  for (const auto& recording : answers("GET", "/health/live", 204)) {
    const auto outcome = parse_answer_live(recording.response);
    EXPECT_TRUE(outcome.unknown()) << recording.name();
    EXPECT_TRUE(outcome.value->ready);
  }
}

TEST(MisleadingAnswer, ARedirectCanNameADeadLeader) {
  const auto recording = recordings_titled("leaderless.json", "append, leader required").at(0);
  const auto outcome = parse_answer_append(recording.response);
  EXPECT_TRUE(outcome.unknown());
  EXPECT_EQ(outcome.code, "redirected");
  EXPECT_TRUE(outcome.why.contains("10.0.0.3:2113")) << outcome.why;
}

TEST(MisleadingAnswer, InfoIsJsonUnderAnyContentType) {
  for (const auto* title : {"info, xml", "info, text", "info, no Accept"}) {
    const auto recording = recordings_titled("node-facts.json", title).at(0);
    const auto outcome = parse_answer_info(recording.response);
    ASSERT_TRUE(outcome.done()) << title << ": " << outcome.why;
    EXPECT_EQ(outcome.value->version, "24.6.0");
  }
}

TEST(MisleadingAnswer, ASingleNodesGossipShowsThePositionOfItsStart) {
  const auto recording = recordings_titled("node-facts.json", "gossip of a single node").at(0);
  const auto gossip = parse_answer_gossip(recording.response);
  ASSERT_TRUE(gossip.done());
  const auto stale = own_writer_checkpoint(*gossip.value, kDialect);
  EXPECT_TRUE(stale.unknown());
  EXPECT_EQ(stale.code, "stale");
  EXPECT_EQ(stale.value, 548);
  EXPECT_TRUE(own_writer_checkpoint(*gossip.value, NodeDialect::of({24, 10, 0})).done());
  const auto three = recordings_titled("node-facts.json", "gossip of the leader").at(0);
  EXPECT_EQ(own_writer_checkpoint(*parse_answer_gossip(three.response).value, kDialect).value,
            13657740);
}

}  // namespace
}  // namespace verger::client::test
