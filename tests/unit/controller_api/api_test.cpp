#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/views.h"
#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ApiTest : public ::testing::Test {
 protected:
  std::string run_to_its_end() {
    const auto run = ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"));
    const std::string id = run.at("id");
    EXPECT_TRUE(a_.h.run_to_end(id));
    return id;
  }
  /// Sequence numbers of the next piece of a stream.
  std::vector<std::int64_t> ids(const http::Response& response) {
    const auto piece = a_.h.wait_for(response.stream());
    EXPECT_TRUE(piece.has_value());
    std::vector<std::int64_t> out;
    std::istringstream in(*piece);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("id: ")) {
        out.push_back(std::stoll(line.substr(4)));
      }
    }
    return out;
  }
  ApiHarness a_;
};

TEST_F(ApiTest, ProblemsAreProblemDetailsWithAStableCode) {
  const auto unknown = a_.call("GET", "/clusters/nowhere");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.headers.get("Content-Type"), "application/problem+json");
  const auto body = ApiHarness::json_of(unknown);
  EXPECT_EQ(body["type"], "urn:verger:problem:not_found");
  EXPECT_EQ(body["status"], 404);
  EXPECT_THAT(body["detail"].get<std::string>(), HasSubstr("there are: prod"));

  EXPECT_EQ(ApiHarness::code_of(a_.call("GET", "/nothing")), "not_found");
  EXPECT_EQ(a_.call("GET", "/other/thing").status, 404);
  const auto method = a_.call("PATCH", "/runs");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.get("Allow"), "GET");
  EXPECT_EQ(ApiHarness::code_of(a_.call("POST", "/clusters/prod/plans", "no json")), "bad_request");
  const auto wrong = a_.call("POST", "/clusters/prod/plans",
                             {{"operation", "scavenge"}, {"parameters", {{"thread", 2}}}});
  EXPECT_THAT(ApiHarness::json_of(wrong)["detail"].get<std::string>(), HasSubstr("thread"));
}

TEST_F(ApiTest, ARefusedPlanTellsAllReasons) {
  a_.h.cluster.node("n2").up = false;
  a_.h.cluster.node("n3").agent_up = false;
  const auto refused = a_.call("POST", "/clusters/prod/plans", {{"operation", "scavenge"}});
  EXPECT_EQ(refused.status, 422);
  const auto body = ApiHarness::json_of(refused);
  EXPECT_EQ(body["code"], "plan_refused");
  std::set<std::string> nodes;
  for (const auto& refusal : body["refusals"]) {
    nodes.insert(refusal["node"]);
    EXPECT_FALSE(refusal["message"].get<std::string>().empty());
  }
  EXPECT_TRUE(nodes.contains("n2"));
  EXPECT_TRUE(nodes.contains("n3"));
}

TEST_F(ApiTest, AStalePlanIsRefusedWithTheDifference) {
  const auto hash = a_.planned();
  a_.h.cluster.elect("n2");
  const auto refused = a_.call("POST", "/plans/" + hash + "/apply");
  EXPECT_EQ(refused.status, 409);
  const auto body = ApiHarness::json_of(refused);
  EXPECT_EQ(body["code"], "stale_plan");
  EXPECT_THAT(body["differences"].dump(), HasSubstr("n2: role was follower, is leader"));
}

TEST_F(ApiTest, TheReportHoldsWhatWasSeen) {
  const auto id = run_to_its_end();
  const auto report = a_.get("/runs/" + id)["report"];
  EXPECT_EQ(report["point"]["number"], 0);
  EXPECT_EQ(report["planned_leader_moves"], 1);
  EXPECT_EQ(report["unplanned_leader_moves"], 0);
  ASSERT_THAT(report["nodes"], SizeIs(3));
  EXPECT_EQ(report["nodes"][0]["name"], "n1");
  EXPECT_EQ(report["nodes"][0]["logical_digest"], "aa");
  EXPECT_EQ(report["digests_equal"], true);
  EXPECT_EQ(report["readable_unchanged"], true);
  EXPECT_TRUE(report["nodes"][0]["bytes_after"].is_null()) << "not reported";
}

TEST_F(ApiTest, TheReportComparesTheSizesOfTheSameChunksAndTellsEachNodesOwnSavings) {
  for (auto& node : a_.h.cluster.nodes) {
    node.newest_chunk = 4;
    node.complete_bytes = 1'000'000 + 10'000 * node.index;
  }
  // While it is scavenged, half of it goes, and much more is written.
  const auto scavenged = [this](const std::string& name) {
    auto& node = a_.h.cluster.node(name);
    node.complete_bytes = node.complete_bytes / 2 + 20 * 262'144;
    node.newest_chunk += 20;
  };
  a_.h.cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
    if (request.target == "/agent/v1/operations" && request.body.contains("\"threads\"")) {
      scavenged(node.name);
    }
  };
  const auto report = a_.get("/runs/" + run_to_its_end())["report"];
  ASSERT_THAT(report["nodes"], SizeIs(3));
  for (const auto& node : report["nodes"]) {
    const auto before = node["bytes_before"].get<std::int64_t>();
    EXPECT_EQ(node["bytes_after"].get<std::int64_t>(), before / 2) << node;
    EXPECT_EQ(node["space_saved"], 100) << node;
  }
  EXPECT_EQ(report["nodes"][2]["bytes_before"], 1'030'000);
}

TEST_F(ApiTest, TheReportTellsAtWhichPointEachNodeIs) {
  a_.h.cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n1" && request.target == "/agent/v1/operations" &&
        request.body.contains("\"threads\"")) {
      a_.h.cluster.points.push_back(9'000);  // another scavenge took n2 further meanwhile
      a_.h.cluster.node("n2").last_finished = 1;
    }
  };
  const auto run = a_.get("/runs/" + run_to_its_end());
  EXPECT_EQ(run["state"], "done-with-differences");
  const auto& report = run["report"];
  EXPECT_EQ(report["point"]["number"], 0);
  for (const auto& node : report["nodes"]) {
    EXPECT_EQ(node["point"]["number"], node["name"] == "n2" ? 1 : 0) << node;
  }
}

TEST_F(ApiTest, TheReportHasBothSizesWhereTheChunkOfThePointWasMergedWithOlderOnes) {
  for (auto& node : a_.h.cluster.nodes) {
    node.newest_chunk = 4;
    node.complete_bytes = 1'000'000;
  }
  // Its point completes chunk 4, and no file begins there afterwards.
  a_.h.cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
    if (request.target == "/agent/v1/operations" && request.body.contains("\"threads\"")) {
      a_.h.cluster.node(node.name).compared = {.chunk = 5, .bytes = 600'000, .completed = 70'000};
    }
  };
  const auto report = a_.get("/runs/" + run_to_its_end())["report"];
  ASSERT_THAT(report["nodes"], SizeIs(3));
  for (const auto& node : report["nodes"]) {
    EXPECT_EQ(node["bytes_before"], 1'070'000) << node;
    EXPECT_EQ(node["bytes_after"], 600'000) << node;
    EXPECT_EQ(node["chunks_compared"], 5) << node;
  }
}

TEST_F(ApiTest, AStepThatIsNotNeededLeavesWhatTheNodeReportedBefore) {
  for (auto& node : a_.h.cluster.nodes) {
    node.newest_chunk = 4;
    node.complete_bytes = 1'000'000;
  }
  // Its turn comes twice: it leads when it is to make the point, which then is there already.
  const auto hash = a_.planned();
  const auto id =
      ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply"))["id"].get<std::string>();
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.cluster.node("n2").last_finished.has_value(); }));
  ASSERT_TRUE(a_.h.run_to_end(id));
  auto state = a_.h.state(id);
  auto plan = *state.plan;
  // As an older point that is finished first, and found finished when its second turn comes.
  auto again = plan.stages.front().groups.front().front();
  again.id = "again-n2";
  again.node = "n2";
  again.kind = "scavenge";
  plan.stages.back().groups.push_back({again});
  state.plan = std::make_shared<const planner::Plan>(plan);
  state.steps["again-n2"].status = StepStatus::kDone;
  state.steps["again-n2"].result = R"({"already":true,"point":{"number":0,"position":1000}})";
  const auto report = views::report(state);
  for (const auto& node : report["nodes"]) {
    EXPECT_EQ(node["bytes_after"], 1'000'000) << node;
    EXPECT_EQ(node["space_saved"], 100) << node;
  }
}

TEST_F(ApiTest, TheReportNamesTheFirstDifferingChunkAndDoesNotCallItCorrupt) {
  a_.h.cluster.node("n3").digest = "bb";
  const auto report = a_.get("/runs/" + run_to_its_end())["report"];
  EXPECT_EQ(report["digests_equal"], false);
  EXPECT_THAT(report["notes"].dump(), HasSubstr("differ first in chunk 1"));
  EXPECT_THAT(report["notes"].dump(), HasSubstr("may rightly differ"));
}

TEST_F(ApiTest, TheReportOfARunThatWasCancelledSaysWhatIsNotDone) {
  a_.h.cluster.scavenge_takes = std::chrono::minutes(1);
  const auto id = ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"))["id"]
                      .get<std::string>();
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.cluster.node("n2").running.has_value(); }));
  ASSERT_EQ(a_.call("POST", "/runs/" + id + "/cancel").status, 202);
  ASSERT_TRUE(a_.h.run_to_end(id));
  const auto notes = a_.get("/runs/" + id)["report"]["notes"].dump();
  EXPECT_THAT(notes, HasSubstr("n2: its scavenge was not seen to end: stopped on request"));
  EXPECT_THAT(notes, HasSubstr("not scavenged: n1, n3"));
  EXPECT_THAT(notes, HasSubstr("digests were not compared: the run was cancelled"));
}

TEST_F(ApiTest, ThereIsNoReportBeforeTheEnd) {
  a_.h.cluster.scavenge_takes = std::chrono::hours(1);
  const auto run = ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"));
  EXPECT_TRUE(run["report"].is_null());
  const auto again = a_.call("POST", "/plans/" + run["plan"].get<std::string>() + "/apply");
  EXPECT_EQ(ApiHarness::code_of(again), "run_active");
}

TEST_F(ApiTest, ServerSentEventsGoOnAfterTheLastEventId) {
  const auto id = run_to_its_end();
  const http::Headers accept{{"Accept", "text/event-stream"}};
  const auto all = a_.call("GET", "/events", nullptr, accept);
  EXPECT_EQ(all.headers.get("Content-Type"), "text/event-stream");
  const auto first = ids(all);
  ASSERT_GT(first.size(), 10U);
  for (std::size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(first[i], static_cast<std::int64_t>(i) + 1) << "the id is the journal's sequence";
  }
  auto resumed = accept;
  resumed.set("Last-Event-ID", "7");
  EXPECT_EQ(ids(a_.call("GET", "/events", nullptr, resumed)).front(), 8);
  // The header is newer than the address that the client began with.
  EXPECT_EQ(ids(a_.call("GET", "/events?after=2", nullptr, resumed)).front(), 8);
  const auto of_run = ids(a_.call("GET", "/events?run=" + id, nullptr, resumed));
  ASSERT_FALSE(of_run.empty());
  EXPECT_GT(of_run.front(), 7);
  auto wrong = accept;
  wrong.set("Last-Event-ID", "seven");
  EXPECT_EQ(a_.call("GET", "/events", nullptr, wrong).status, 400);
}

TEST_F(ApiTest, APieceOfTheStreamComesWhenSomethingHappens) {
  const auto last = a_.h.journal->last_sequence()->value();
  const http::Headers accept{{"Accept", "text/event-stream"},
                             {"Last-Event-ID", std::to_string(last)}};
  const auto stream = a_.call("GET", "/events", nullptr, accept);
  const auto quiet = a_.h.wait_for(stream.stream());
  EXPECT_THAT(*quiet, ::testing::StartsWith(":")) << "a comment keeps the connection alive";
  ASSERT_TRUE(a_.h.registry->set_paused("prod", true, "audit").has_value());
  EXPECT_THAT(*a_.h.wait_for(stream.stream()), HasSubstr("event: cluster-paused"));
}

TEST_F(ApiTest, PoliciesAreAppliedShownChangedAndDeleted) {
  const std::string yaml =
      "name: nightly\nclusters: [prod]\nschedule: [{cron: '0 2 * * *', zone: Europe/Berlin}]\n"
      "windows: {allow: [{from: '02:00', to: '04:00', zone: Europe/Berlin}]}\n";
  const auto valid = ApiHarness::json_of(a_.call("POST", "/policies/validate", {{"yaml", yaml}}));
  EXPECT_THAT(valid["selected_now"], ElementsAre("prod"));
  EXPECT_THAT(a_.get("/policies")["policies"], SizeIs(0)) << "validating changes nothing";
  const auto invalid =
      a_.call("POST", "/policies/validate", {{"yaml", "name: a\nclusters: [b]\ntreads: 2\n"}});
  EXPECT_EQ(invalid.status, 422);
  EXPECT_EQ(ApiHarness::json_of(invalid)["problems"][0]["line"], 3);

  const auto applied = a_.call("PUT", "/policies/nightly", {{"yaml", yaml}});
  EXPECT_EQ(applied.status, 200);
  EXPECT_EQ(applied.headers.get("ETag"), "\"1\"");
  EXPECT_EQ(a_.call("PUT", "/policies/other", {{"yaml", yaml}}).status, 400);
  const auto diff =
      ApiHarness::json_of(a_.call("POST", "/policies/diff", {{"yaml", yaml + "catch_up: skip\n"}}));
  ASSERT_THAT(diff["changes"], SizeIs(1));
  EXPECT_EQ(diff["changes"][0]["key"], "catch_up");
  const auto late = a_.call("PUT", "/policies/nightly", {{"yaml", yaml + "catch_up: skip\n"}},
                            {{"If-Match", "\"7\""}});
  EXPECT_EQ(late.status, 412);
  EXPECT_EQ(ApiHarness::code_of(late), "changed_meanwhile");
  EXPECT_EQ(a_.call("PUT", "/policies/nightly", {{"yaml", yaml + "catch_up: skip\n"}},
                    {{"If-Match", "\"1\""}})
                .headers.get("ETag"),
            "\"2\"");

  const auto schedule = a_.get("/clusters/prod/schedule?zone=America/New_York");
  ASSERT_THAT(schedule["times"], SizeIs(20));
  // Virtual time begins at 2024-06-02T00:00:00Z, which is 02:00 in Berlin.
  EXPECT_EQ(schedule["times"][0]["yours"], "Sat 2024-06-01 20:00 EDT");
  EXPECT_EQ(schedule["times"][0]["policys"], "Sun 2024-06-02 02:00 CEST");
  EXPECT_EQ(schedule["times"][0]["length_seconds"], 7200);
  EXPECT_EQ(a_.call("GET", "/clusters/prod/schedule?zone=Mars").status, 400);

  EXPECT_EQ(a_.call("DELETE", "/policies/nightly").status, 204);
  EXPECT_EQ(a_.call("GET", "/policies/nightly").status, 404);
}

TEST_F(ApiTest, AClusterIsPausedUntilATimeAndResumed) {
  const auto past = a_.call("POST", "/clusters/prod/pause", {{"until", "2020-01-01T00:00:00Z"}});
  EXPECT_EQ(past.status, 400);
  const auto paused = a_.call("POST", "/clusters/prod/pause",
                              {{"until", "2024-06-03T00:00:00Z"}, {"reason", "audit"}});
  EXPECT_EQ(paused.status, 202);
  EXPECT_EQ(ApiHarness::json_of(paused)["pause_until"], "2024-06-03T00:00:00Z");
  const auto refused = a_.call("POST", "/plans/" + a_.planned() + "/apply");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(ApiHarness::json_of(refused)["detail"].get<std::string>(), HasSubstr("audit"));
  EXPECT_EQ(ApiHarness::json_of(a_.call("POST", "/clusters/prod/resume"))["paused"], false);
  EXPECT_EQ(a_.call("POST", "/clusters/prod/pause", {{"mode", "soon"}}).status, 400);
}

TEST_F(ApiTest, ListsComeInPagesAndNothingComesTwice) {
  for (int i = 0; i < 5; ++i) {
    const auto name = fmt::format("p{}", i);
    ASSERT_EQ(a_.call("PUT", "/policies/" + name,
                      {{"yaml", fmt::format("name: {}\nclusters: [prod]\n", name)}})
                  .status,
              200);
  }
  std::vector<std::string> seen;
  std::string cursor;
  int page = 0;
  do {
    const auto answer = a_.get("/policies?limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
    for (const auto& policy : answer["policies"]) {
      seen.push_back(policy["name"]);
    }
    if (page++ == 0) {
      // What comes before the cursor, or goes after it, moves nothing else.
      a_.call("PUT", "/policies/a0", {{"yaml", "name: a0\nclusters: [prod]\n"}});
      a_.call("DELETE", "/policies/p4");
    }
    cursor = answer["next_cursor"].is_string() ? answer["next_cursor"].get<std::string>() : "";
  } while (!cursor.empty() && page < 5);
  EXPECT_EQ(page, 2);
  EXPECT_THAT(seen, ::testing::ElementsAre("p0", "p1", "p2", "p3"));
  EXPECT_EQ(ApiHarness::code_of(a_.call("GET", "/policies?cursor=gone")), "bad_cursor");
  EXPECT_EQ(a_.call("GET", "/runs?limit=0").status, 400);
}

TEST_F(ApiTest, AnEtagSparesTheBodyAndGuardsAnIntent) {
  const auto started = a_.call("POST", "/plans/" + a_.planned() + "/apply");
  const auto path = "/runs/" + ApiHarness::json_of(started)["id"].get<std::string>();
  const auto first = a_.call("GET", path);
  const std::string tag(first.headers.get("ETag").value_or(""));
  ASSERT_FALSE(tag.empty());
  http::Headers known;
  known.set("If-None-Match", tag);
  const auto again = a_.call("GET", path, nullptr, known);
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
  ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").running.has_value(); }));
  EXPECT_EQ(a_.call("GET", path, nullptr, known).status, 200) << "it has changed";
  http::Headers stale;
  stale.set("If-Match", tag);
  const auto refused = a_.call("POST", path + "/cancel", json::object(), stale);
  EXPECT_EQ(refused.status, 412);
  EXPECT_EQ(ApiHarness::code_of(refused), "changed_meanwhile");
  http::Headers fresh;
  fresh.set("If-Match", std::string(a_.call("GET", path).headers.get("ETag").value_or("")));
  EXPECT_EQ(a_.call("POST", path + "/cancel", json::object(), fresh).status, 202);
}

TEST_F(ApiTest, ASkipIsForcedForAReasonOnlyAndTellsWhatStillRunsThere) {
  const auto hash = a_.planned();
  const std::string run =
      ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply")).at("id");
  const auto path = "/runs/" + run + "/skip";
  const auto refused = a_.call("POST", path, {{"node", "n2"}, {"force", true}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, ::testing::HasSubstr("reason"));
  ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").running.has_value(); }));
  a_.h.cluster.node("n2").agent_up = false;
  a_.h.cluster.node("n2").running->ends = Monotonic::max();
  const auto skipped = a_.call("POST", path, {{"node", "n2"}});
  EXPECT_EQ(skipped.status, 202);
  EXPECT_THAT(ApiHarness::json_of(skipped).value("notice", std::string()),
              ::testing::HasSubstr("n2 still scavenges"));
  const auto forced = a_.call("POST", path, {{"node", "n2"}, {"force", true}, {"reason", "idle"}});
  EXPECT_EQ(forced.status, 202);
  EXPECT_FALSE(ApiHarness::json_of(forced).contains("notice"));
}

TEST_F(ApiTest, ARunIsThrottledAndShowsItAndHowFarItsStepsAre) {
  a_.h.cluster.digest_takes = std::chrono::seconds(20);
  const auto hash = a_.planned();
  const std::string run =
      ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply")).at("id");
  EXPECT_TRUE(a_.get("/runs/" + run)["throttle"].is_null());
  const auto path = "/runs/" + run + "/throttle";
  EXPECT_EQ(a_.call("POST", path, {{"percent", 0}}).status, 400);
  EXPECT_EQ(a_.call("POST", path, {{"bytes_per_second", -1}}).status, 400);
  EXPECT_EQ(a_.call("POST", path, {{"rate", 5}}).status, 400);
  const auto throttled = a_.call("POST", path, {{"percent", 20}});
  EXPECT_EQ(throttled.status, 202);
  const json expected = {{"percent", 20}, {"bytes_per_second", 0}};
  EXPECT_EQ(ApiHarness::json_of(throttled)["throttle"], expected);
  const auto& first = a_.h.cluster.node("n1");  // its digest is the first
  ASSERT_TRUE(a_.h.run_until([&] { return first.digest_done > std::chrono::seconds(15); }));
  json progress;
  const auto seen = a_.get("/runs/" + run);
  for (const auto& stage : seen["stages"]) {
    for (const auto& step : stage["steps"]) {
      if (step["progress"].is_object() && step["progress"]["unit"] == "bytes") {
        progress = step["progress"];
      }
    }
  }
  ASSERT_TRUE(progress.is_object()) << seen;
  EXPECT_GT(progress["done"], 1'000);
  EXPECT_THAT(progress["phase"].get<std::string>(), ::testing::HasSubstr("reading the log"));
  EXPECT_EQ(progress["total"], 20'000);
  EXPECT_TRUE(progress["since"].is_string()) << progress;
  EXPECT_TRUE(progress.contains("chunks_done")) << "for a version";
  const auto metrics = a_.call("GET", "/metrics").body;
  EXPECT_THAT(metrics, ::testing::HasSubstr("verger_step_progress_ratio{"));
  EXPECT_THAT(metrics, ::testing::HasSubstr("unit=\"bytes\""));
}

TEST_F(ApiTest, AMemberOfAnotherTypeIsTheAskersMistake) {
  const auto hash = a_.planned();
  const std::string run =
      ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply")).at("id");
  const json number = 7;
  const std::vector<std::tuple<std::string, std::string, json>> wrong{
      {"POST", "/runs/" + run + "/pause", {{"reason", number}}},
      {"POST", "/runs/" + run + "/pause", {{"mode", number}}},
      {"POST", "/runs/" + run + "/skip", {{"node", json::array()}}},
      {"POST", "/clusters/prod/pause", {{"reason", number}}},
      {"POST", "/clusters/prod/pause", {{"until", number}}},
      {"POST", "/clusters", {{"name", number}}},
      {"POST", "/clusters", {{"name", "x"}, {"labels", "a=b"}}},
      {"POST", "/clusters", {{"name", "x"}, {"labels", {{"a", 1}}}}},
      {"POST", "/clusters", {{"name", "x"}, {"nodes", "n1"}}},
      {"POST", "/clusters", {{"name", "x"}, {"nodes", {{{"node", 1}}}}}},
      {"POST", "/clusters/prod/plans", {{"operation", number}}},
      {"POST", "/clusters/prod/plans", {{"operation", "scavenge"}, {"parameters", "fast"}}},
      {"POST",
       "/clusters/prod/plans",
       {{"operation", "scavenge"}, {"parameters", {{"threads", 4294967298}}}}},
      {"POST", "/tokens", {{"name", number}}},
      {"POST", "/tokens", {{"name", "ann"}, {"role", number}}},
      {"PUT", "/policies/nightly", {{"yaml", number}}},
  };
  for (const auto& [method, path, body] : wrong) {
    SCOPED_TRACE(path + " " + body.dump());
    const auto answer = a_.call(method, path, body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(ApiHarness::code_of(answer), "bad_request") << answer.body;
  }
}

TEST_F(ApiTest, AMemberThatIsNotKnownIsRefusedSinceItWasMeantToCount) {
  const auto hash = a_.planned();
  const std::vector<std::tuple<std::string, std::string, json>> wrong{
      {"POST", "/clusters", {{"name", "x"}, {"nodes", json::array()}, {"credentails", "x"}}},
      {"POST", "/clusters", {{"name", "x"}, {"nodes", {{{"node", "http://n"}, {"agnet", "x"}}}}}},
      {"POST", "/clusters/prod/pause", {{"untill", "2030-01-01T00:00:00Z"}}},
      {"POST", "/clusters/prod/resume", {{"mode", "now"}}},
      {"POST", "/clusters/prod/plans", {{"operation", "scavenge"}, {"threads", 4}}},
      {"POST", "/plans/" + hash + "/apply", {{"dry_run", true}}},
      {"PUT", "/policies/nightly", {{"yaml", "name: nightly"}, {"enabled", false}}},
  };
  for (const auto& [method, path, body] : wrong) {
    SCOPED_TRACE(path + " " + body.dump());
    const auto answer = a_.call(method, path, body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr("has no member"));
  }
  EXPECT_TRUE(a_.h.executor->runs("prod").empty());
}

TEST_F(ApiTest, AnAgentThatObeysANewerControllerIsSaidBeforeAnythingIsPlanned) {
  a_.h.cluster.node("n2").highest_epoch = 37;
  EXPECT_THAT(a_.get("/clusters/prod")["snapshot"]["warnings"].dump(),
              HasSubstr("the agent of n2 obeys a controller with epoch 37"));
  const auto refused = a_.call("POST", "/clusters/prod/plans", {{"operation", "scavenge"}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.body, HasSubstr("--epoch-above"));
  EXPECT_EQ(ApiHarness::json_of(refused)["refusals"][0]["code"], "newer-controller");
}

TEST_F(ApiTest, TheExpectedEndIsARangeFromThisClustersHistoryAndSaysWhenItIsPassed) {
  const auto begin = [this] {
    return ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"))["id"]
        .get<std::string>();
  };
  a_.h.cluster.scavenge_takes = std::chrono::minutes(1);
  ASSERT_TRUE(a_.h.run_to_end(begin()));
  a_.h.cluster.scavenge_takes = std::chrono::minutes(30);
  const auto run = begin();
  ASSERT_TRUE(a_.h.run_until([this] {
    return std::ranges::any_of(a_.h.cluster.nodes,
                               [](const auto& node) { return node.running.has_value(); });
  }));
  a_.h.run_until([] { return false; }, std::chrono::seconds(5));
  const auto early = a_.get("/runs/" + run)["expected_end"];
  ASSERT_TRUE(early.is_object());
  EXPECT_EQ(early["overdue"], false);
  const auto in = [this](const json& time) {
    return (parse_ticks(time.get<std::string>()).value().value() - a_.h.time.now().value()) /
           kTicksPerSecond;
  };
  EXPECT_GT(in(early["earliest"]), 2 * 60) << "three nodes, a minute each";
  EXPECT_LT(in(early["latest"]), 15 * 60);
  EXPECT_LE(early["earliest"], early["latest"]);
  a_.h.run_until([] { return false; }, std::chrono::minutes(10));
  const auto late = a_.get("/runs/" + run)["expected_end"];
  EXPECT_EQ(late["overdue"], true);
  EXPECT_GT(in(late["earliest"]), 60) << "the other two";
}

TEST_F(ApiTest, APersonPlansAsAPolicyWould) {
  const std::string yaml =
      "name: nightly\nclusters: [prod]\nparameters: {threads: 3}\ngates: {clock_skew: 7s}\n";
  ASSERT_EQ(a_.call("PUT", "/policies/nightly", {{"yaml", yaml}}).status, 200);
  const auto plan = [this](json body) {
    body["operation"] = "scavenge";
    return ApiHarness::json_of(a_.call("POST", "/clusters/prod/plans", body));
  };
  const auto as_it_is = plan({{"policy", "nightly"}});
  EXPECT_EQ(as_it_is["policy"], "nightly");
  EXPECT_EQ(as_it_is["parameters"]["threads"], 3);
  EXPECT_THAT(as_it_is["stages"].dump(), HasSubstr("clocks 7 s"));
  const auto changed = plan({{"policy", "nightly"}, {"parameters", {{"threads", 1}}}});
  EXPECT_EQ(changed["parameters"]["threads"], 1);
  EXPECT_NE(changed["hash"], as_it_is["hash"]);
  EXPECT_EQ(plan({})["policy"], "ad-hoc");
  EXPECT_EQ(plan({{"policy", "none"}})["code"], "not_found");
  ASSERT_EQ(a_.call("PUT", "/policies/other", {{"yaml", "name: other\nclusters: [x]\n"}}).status,
            200);
  EXPECT_EQ(plan({{"policy", "other"}})["code"], "wrong_state");
}

TEST_F(ApiTest, ARefusalSaysByItsCodeWhatStandsInTheWay) {
  a_.h.cluster.scavenge_takes = std::chrono::minutes(1);
  const auto hash = a_.planned();
  const auto other = ApiHarness::json_of(a_.call(
      "POST", "/clusters/prod/plans",
      {{"operation", "scavenge"}, {"parameters", {{"threshold", 5}}}}))["hash"]
                         .get<std::string>();
  ASSERT_EQ(a_.call("POST", "/clusters/prod/pause").status, 202);
  EXPECT_EQ(ApiHarness::code_of(a_.call("POST", "/plans/" + hash + "/apply")), "cluster_paused");
  ASSERT_EQ(a_.call("POST", "/clusters/prod/resume").status, 202);
  ASSERT_EQ(a_.call("POST", "/plans/" + hash + "/apply").status, 202);
  EXPECT_EQ(ApiHarness::code_of(a_.call("POST", "/plans/" + other + "/apply")), "run_active");
  ASSERT_TRUE(a_.h.journal->begin_epoch("another").has_value());
  EXPECT_EQ(ApiHarness::code_of(a_.call("POST", "/clusters/prod/pause")), "other_controller");
}

TEST_F(ApiTest, EventsOfOneRunComeWithoutThoseOfOthers) {
  const auto hash = a_.planned();
  const std::string run =
      ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply")).at("id");
  ASSERT_TRUE(a_.h.run_to_end(run));
  const auto all = a_.get("/events?run=" + run);
  ASSERT_GE(all["events"].size(), 3U);
  for (const auto& event : all["events"]) {
    EXPECT_EQ(event["stream"], "run/" + run);
  }
  EXPECT_EQ(all["next"], a_.h.journal->last_sequence()->value());
  const auto rest = a_.get("/events?run=" + run + "&after=" + all["events"][1]["sequence"].dump());
  EXPECT_EQ(rest["events"].size(), all["events"].size() - 2);
}

}  // namespace
}  // namespace verger::controller
