#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace verger::controller
