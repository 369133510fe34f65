#include "nodeagent/client/answers.h"

#include <gtest/gtest.h>

#include "nodeagent/client/agent_client.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/client/server_work.h"
#include "tests/unit/nodeagent_client/recordings.h"

namespace verger::client::test {
namespace {

constexpr auto kId = "0f3f0d1c-2a86-4e0b-9d3e-5a7b1a5f8f10";

http::Response answer(int status, std::string body = {}, std::string reason = {}) {
  return http::Response{.status = status,
                        .reason = std::move(reason),
                        .headers = {{"Content-Type", "application/json"}},
                        .body = std::move(body)};
}

TEST(Answers, CarryTheFactsOfTheRecordings) {
  const auto stats =
      parse_answer_stats(recordings_titled("node-facts.json", "stats complete").at(0).response);
  ASSERT_TRUE(stats.done());
  EXPECT_EQ(stats.value->checksum, 13657740);
  EXPECT_EQ(stats.value->process_id, 436);
  EXPECT_EQ(stats.value->process_start, "2026-11-21T07:47:27.6763203Z");
  EXPECT_EQ(stats.value->disk_free_bytes, 79162650624);
  const auto metrics = parse_answer_metrics(
      recordings_titled("node-facts.json", "metrics (status lines and names)").at(0).response);
  ASSERT_TRUE(metrics.done());
  EXPECT_EQ(metrics.value->node, "Follower");
  EXPECT_EQ(metrics.value->index, "Idle");
  EXPECT_EQ(metrics.value->scavenge, "Idle");
  const auto page =
      parse_answer_page(recordings_titled("atom.json", "two forward from 0").at(0).response);
  ASSERT_TRUE(page.done()) << page.why;
  EXPECT_TRUE(page.value->events.empty());  // truncated: no end of the stream
  EXPECT_FALSE(page.value->head_of_stream);
  EXPECT_FALSE(page.value->previous.empty());
  const auto appended =
      parse_answer_append(recordings_titled("atom.json", "append two events").at(0).response);
  EXPECT_EQ(appended.value->first_number, 4);
}

TEST(Answers, TakeTheStatusThatWasCurrentLast) {
  const auto metrics = parse_answer_metrics(
      answer(200,
             "# TYPE kurrentdb_statuses gauge\n"
             "kurrentdb_statuses{name=\"Scavenge\",status=\"Idle\"} 1717236000 1717236999786\n"
             "kurrentdb_statuses{status=\"Chunk execution Phase\",name=\"Scavenge\"} 1717236999\n"
             "kurrentdb_statuses{name=\"Scavenge\",status=\"Accumulation Phase\"} 1.717236e9\n"
             "kurrentdb_statuses{name=\"Scavenge\"\n}{\n"
             "kurrentdb_statuses{name=\"Node\",status=\"Leader\"} x\n"));
  ASSERT_TRUE(metrics.done());
  EXPECT_EQ(metrics.value->scavenge, "Chunk execution Phase");
  EXPECT_EQ(metrics.value->node, "");
  EXPECT_EQ(parse_answer_metrics(answer(200, "<html>")).code, "unexpected_answer");
}

TEST(Answers, OfOldVersionsNameTheRunningScavenge) {
  const auto old = NodeDialect::of({22, 10, 5});
  for (const auto& body :
       {fmt::format("{{\"scavengeId\":\"{}\"}}", kId), fmt::format("ScavengeId: {}", kId)}) {
    const auto outcome = parse_answer_start_scavenge(answer(400, body), old);
    EXPECT_EQ(outcome.code, "already_running");
    EXPECT_TRUE(outcome.refused());
    EXPECT_EQ(outcome.value->id, kId);
    EXPECT_EQ(parse_answer_start_scavenge(answer(400, body), NodeDialect{}).code,
              "already_running");
  }
  const auto stopped =
      parse_answer_stop(answer(200, fmt::format("\"{}\"", kId)), NodeDialect::of({22, 10, 0}));
  EXPECT_EQ(stopped.code, "stopping");
  EXPECT_EQ(stopped.value->id, kId);
}

TEST(Answers, OfLastScavenges) {
  const auto body = [](std::string_view id, std::string_view result) {
    return fmt::format(R"({{"scavengeId":"{}","scavengeLink":"","scavengeResult":"{}"}})", id,
                       result);
  };
  const auto success = parse_answer_last(answer(200, body(kId, "Success")));
  EXPECT_TRUE(success.done());
  EXPECT_EQ(success.value->result, LastResult::kSuccess);
  const auto restarted =
      parse_answer_last(answer(200, body("00000000-0000-0000-0000-000000000000", "Unknown")));
  EXPECT_EQ(restarted.value->id, "");
  EXPECT_EQ(restarted.value->result, LastResult::kUnknown);
  EXPECT_EQ(parse_answer_last(answer(200, body(kId, "Fine"))).code, "unexpected_answer");
}

TEST(Answers, OfProjectionsSayWhichRun) {
  // As a real server lists them after an election.
  const auto list = parse_answer_projections(answer(200, R"json({"projections":[
      {"name":"$streams","status":"Running","stateReason":"","mode":"Continuous"},
      {"name":"one","status":"Running/CompletingPhase/Writing results","mode":"OneTime"},
      {"name":"p1","status":"Preparing","mode":"Continuous"},
      {"name":"off","status":"Stopped (Enabled)","mode":"Continuous"},
      {"name":"bad","status":"Faulted","stateReason":"no","mode":"Continuous"}]})json"));
  ASSERT_TRUE(list.done());
  std::vector<WorkState> states;
  for (const auto& each : *list.value) {
    states.push_back(each.state);
  }
  using enum WorkState;
  EXPECT_EQ(states, (std::vector{kRunning, kRunning, kStarting, kStopped, kStopped}));
  EXPECT_FALSE(list.value->at(1).continuous);
  EXPECT_EQ(list.value->at(4).status, "Faulted: no");
  EXPECT_EQ(parse_answer_projections(answer(404, "")).code, "no_such_route");
  for (const auto* body : {"", "[]", "{}", R"json({"projections":[3]})json"}) {
    EXPECT_EQ(parse_answer_projections(answer(200, body)).code, "unexpected_answer") << body;
  }
}

TEST(Answers, OfSubscriptionsSayWhichRun) {
  const auto list = parse_answer_subscriptions(answer(200, R"json([
      {"eventStreamId":"s","groupName":"g1","status":"Live"},
      {"eventStreamId":"s","groupName":"g2","status":"Behind, OutstandingPageRequest"},
      {"eventStreamId":"s","groupName":"g3","status":"NotReady"}])json"));
  ASSERT_TRUE(list.done());
  EXPECT_EQ(list.value->at(0).name, "s::g1");
  EXPECT_EQ(list.value->at(1).state, WorkState::kRunning);
  EXPECT_EQ(list.value->at(2).state, WorkState::kStarting);
  // Without a leader: an empty list, but no success.
  EXPECT_EQ(parse_answer_subscriptions(answer(503, "[]")).code, "not_ready");
  EXPECT_EQ(parse_answer_subscriptions(answer(200, "{}")).code, "unexpected_answer");
}

TEST(Answers, SayWhenANodeIsNotReady) {
  http::Response busy{.status = 503, .reason = "Server Is Too Busy"};
  EXPECT_EQ(parse_answer_current(busy).code, "too_busy");
  http::Response starting{
      .status = 503, .reason = "Service Unavailable", .headers = {{"Retry-After", "5"}}};
  EXPECT_EQ(parse_answer_queued(starting).code, "not_ready");
  EXPECT_EQ(parse_answer_queued(starting).retry_after.count(), 5);
  // 20.10 says 401 then, and keeps the header.
  http::Response old{.status = 401, .headers = {{"Retry-After", "5"}}};
  EXPECT_EQ(parse_answer_queued(old).code, "not_ready");
}

TEST(Answers, OfAutoScavenge) {
  using enum AutoScavengeState;
  const auto state = [](http::Response response) {
    return parse_answer_auto_scavenge(response).value.value_or(AutoScavenge{}).state;
  };
  EXPECT_EQ(state(answer(404)), kNotInstalled);
  EXPECT_EQ(state(answer(503)), kNotEnabled);
  EXPECT_EQ(state(answer(200, R"({"state":"Paused","schedule":null})")), kPaused);
  const auto waiting =
      parse_answer_auto_scavenge(answer(200, R"({"state":"Waiting","schedule":"0 2 * * *"})"));
  EXPECT_TRUE(waiting.value->active());
  EXPECT_EQ(waiting.value->schedule, "0 2 * * *");
  EXPECT_FALSE(parse_answer_auto_scavenge(answer(200, "{}")).done());
  EXPECT_EQ(parse_answer_auto_scavenge(answer(503, "", "Server Is Not Ready")).code, "not_ready");
  EXPECT_TRUE(parse_answer_auto_scavenge_change(answer(200)).done());
  EXPECT_TRUE(parse_answer_auto_scavenge_change(answer(202)).unknown());
  EXPECT_EQ(parse_answer_auto_scavenge_change(answer(400, "leader moves")).code, "rejected");
}

TEST(Answers, WithoutAnEndLeaveAScavengeOpen) {
  std::vector<api::ScavengeEvent> events(1);
  events[0].type = "$scavengeStarted";
  events[0].scavenge_id = kId;
  EXPECT_EQ(end_of_scavenge(events, kId).code, "still_open");
  EXPECT_EQ(end_of_scavenge(events, "another").code, "still_open");
  const auto stopped = recordings_titled("scavenge-lifecycle.json", "log of the stopped run").at(0);
  const auto log = parse_answer_scavenges(stopped.response);
  const auto end = end_of_scavenge(*log.value, log.value->front().scavenge_id);
  EXPECT_TRUE(end.refused());
  EXPECT_EQ(end.code, "stopped");
}

TEST(Answers, OfAnAgentCarryItsCode) {
  const auto stale = parse_answer_permit(
      answer(409, R"({"status":409,"code":"stale_epoch","detail":"epoch 3 is older than 4"})"));
  EXPECT_TRUE(stale.refused());
  EXPECT_EQ(stale.code, "stale_epoch");
  EXPECT_TRUE(parse_answer_permit(answer(204)).done());
  EXPECT_TRUE(parse_answer_permit(answer(200)).unknown());
  EXPECT_EQ(parse_answer_operation(answer(404, R"({"code":"not_found"})")).code, "not_found");
  EXPECT_EQ(parse_answer_operation(answer(404, "<html>")).code, "no_such_route");
  EXPECT_TRUE(parse_answer_operation(answer(500, R"({"code":"io"})")).unknown());
  EXPECT_TRUE(parse_answer_operation(answer(202, R"({"id":"a","state":"accepted"})")).done());
  EXPECT_TRUE(parse_answer_operation(answer(202, "{}")).unknown());
  EXPECT_EQ(parse_answer_file(answer(200, R"({"sha256":"aa","bytes":3})")).value->bytes, 3);
  EXPECT_EQ(parse_answer_file(answer(404, R"({"code":"not_found"})")).code, "not_found");
  EXPECT_TRUE(parse_answer_files(answer(200, R"({"files":[]})")).done());
  EXPECT_TRUE(parse_answer_files(answer(200, R"({"files":[{}]})")).unknown());
}

TEST(Answers, AreReadWithAnyBytes) {
  const auto gossip = recordings_titled("node-facts.json", "gossip of a single node").at(0);
  for (std::size_t at = 0; at < gossip.response.body.size(); at += 3) {
    auto response = gossip.response;
    for (const char c : {'\0', '"', '}', '\xff', '9'}) {
      response.body[at] = c;
      static_cast<void>(parse_answer_gossip(response));
      static_cast<void>(parse_answer_info(response));
      static_cast<void>(parse_answer_page(response));
      static_cast<void>(parse_answer_login(response));
      static_cast<void>(parse_answer_stats(response));
      static_cast<void>(parse_answer_metrics(response));
    }
    response.body.resize(at);
    EXPECT_FALSE(parse_answer_gossip(response).done());
  }
  for (const auto* body :
       {"5", "[]", "null", "\"x\"", R"({"success":1,"data":5})",
        R"({"success":true,"data":{"groups":5}})", R"({"es":5,"sys":{"drive":[1]}})",
        R"({"entries":[5]})", R"({"entries":[{"eventType":5,"eventNumber":""}]})"}) {
    EXPECT_FALSE(parse_answer_login(answer(200, body)).done()) << body;
    EXPECT_FALSE(parse_answer_stats(answer(200, body)).done()) << body;
    EXPECT_FALSE(parse_answer_page(answer(200, body)).done()) << body;
    EXPECT_FALSE(parse_answer_last(answer(200, body)).done()) << body;
    EXPECT_FALSE(parse_answer_auto_scavenge(answer(200, body)).done()) << body;
    EXPECT_FALSE(parse_answer_merge_indexes(answer(200, body)).done()) << body;
  }
}

TEST(Dialect, FollowsTheVersions) {
  const auto of = [](std::string_view text) { return *NodeDialect::of_text(text); };
  EXPECT_FALSE(of("5.0.11.0").resign);
  EXPECT_FALSE(of("5.0.11.0").reload);
  EXPECT_FALSE(of("21.10.11.0").scavenge_parameters);
  EXPECT_TRUE(of("20.10.5.0").reload_takes_new_paths);
  EXPECT_FALSE(of("22.10.2.0").reload_takes_new_paths);
  EXPECT_TRUE(of("22.10.3.0").reload_takes_new_paths);
  EXPECT_FALSE(of("22.10.0.0").current_scavenge);
  EXPECT_FALSE(of("22.10.0.0").stop_waits);
  EXPECT_TRUE(of("22.10.1.0").current_scavenge);
  EXPECT_TRUE(of("22.10.5.0").running_id_in_refusal);
  EXPECT_FALSE(of("23.6.0.0").running_id_in_refusal);
  EXPECT_TRUE(of("23.6.0.0").metrics);
  EXPECT_FALSE(of("24.6.0").last_scavenge);
  EXPECT_TRUE(of("24.6.0").stale_single_gossip);
  EXPECT_TRUE(of("24.10.0").last_scavenge);
  EXPECT_FALSE(of("24.10.0").stale_single_gossip);
  EXPECT_TRUE(of("25.0.0.1673").may_auto_scavenge);
  EXPECT_EQ(NodeDialect::of_text("old_version"), std::nullopt);
  EXPECT_EQ(of("24.6.0"), NodeDialect{});
}

}  // namespace
}  // namespace verger::client::test
