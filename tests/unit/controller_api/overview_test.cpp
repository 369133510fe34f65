// What an operator sees at a glance: of plans before they run, of clusters, of what waits.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "tests/support/member_case.h"
#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;

class OverviewTest : public ::testing::Test {
 protected:
  json plan(json body = json::object()) {
    body["operation"] = "scavenge";
    return ApiHarness::json_of(a_.call("POST", "/clusters/prod/plans", body));
  }
  std::string started(const std::string& hash) {
    const auto run = ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply"));
    return run.value("id", run.dump());
  }
  json listed(const std::string& query = "") {
    const auto answer = a_.get("/clusters" + query);
    EXPECT_EQ(answer["clusters"].size(), 1U) << answer.dump(1);
    return answer["clusters"].at(0);
  }
  ApiHarness a_;
};

TEST_F(OverviewTest, AScheduleHasAsManyTimesAsWanted) {
  const std::string yaml =
      "name: nightly\nclusters: [prod]\nschedule: [{cron: '0 1 * * *', zone: UTC}]\n";
  ASSERT_EQ(a_.call("PUT", "/policies/nightly", {{"yaml", yaml}}).status, 200);
  EXPECT_EQ(a_.get("/clusters/prod/schedule")["times"].size(), 10U);
  EXPECT_EQ(a_.get("/clusters/prod/schedule?count=31")["times"].size(), 31U);
  for (const auto* wrong : {"0", "501", "-1", "many"}) {
    EXPECT_EQ(a_.call("GET", std::string("/clusters/prod/schedule?count=") + wrong).status, 400)
        << wrong;
  }
}

TEST_F(OverviewTest, APlanTellsItsTimeItsDiskAndItsGatesInUnits) {
  a_.h.cluster.node("n2").disk_free = std::int64_t{7} << 30U;
  const auto made = plan();
  ASSERT_TRUE(made["expected_seconds"].is_object()) << made.dump(1);
  EXPECT_GT(made["expected_seconds"]["max"], 0);
  EXPECT_EQ(made["expected_from"], "sizes");
  EXPECT_TRUE(made["last_success"].is_null());
  bool seen = false;
  for (const auto& node : made["forecast"]) {
    if (node["node"] == "n2") {
      seen = true;
      EXPECT_EQ(node["disk_free_bytes"], std::int64_t{7} << 30U);
      EXPECT_GT(node["disk_needed_bytes"], 0);
    }
  }
  EXPECT_TRUE(seen);
  EXPECT_THAT(made["stages"].dump(), HasSubstr("lag-below 16 MiB"));
  EXPECT_EQ(a_.get("/plans/" + made["hash"].get<std::string>()), made)
      << "shown later as it was when it was made";
}

TEST_F(OverviewTest, PlansWithOtherParametersTellThem) {
  const auto usual = plan();
  const auto other = plan({{"parameters", {{"threshold", -1}, {"throttle_percent", 5}}}});
  EXPECT_NE(usual["parameters"], other["parameters"]);
  EXPECT_EQ(other["parameters"]["threshold"], -1);
  ASSERT_EQ(
      a_.call("PUT", "/policies/careful",
              {{"yaml", "name: careful\nclusters: [prod]\nparameters: {leader: {threads: 2}}\n"}})
          .status,
      200);
  EXPECT_EQ(plan({{"policy", "careful"}})["parameters"]["leader_threads"], 2);
}

TEST_F(OverviewTest, APlanTellsWhereItsEstimatesAreFromAndWhatTheLastRunWas) {
  const auto first = started(a_.planned());
  ASSERT_TRUE(a_.h.run_to_end(first));
  const auto made = plan();
  EXPECT_EQ(made["expected_from"], "history");
  EXPECT_EQ(made["last_success"]["run"], first);
  ASSERT_EQ(made["freed_before"].size(), 3U) << made["freed_before"];
  EXPECT_EQ(made["freed_before"][0]["node"], "n1");
  EXPECT_EQ(made["freed_before"][0]["space_saved"], 100);
  EXPECT_EQ(made["freed_before"][0]["run"], first);
}

TEST_F(OverviewTest, WhatAFailedRunFreedIsKnownToo) {
  const auto run = started(a_.planned());
  ASSERT_TRUE(a_.h.run_until([this, &run] {
    return a_.h.state(run).steps.at("scavenge-n2").status == StepStatus::kDone;
  }));
  ASSERT_EQ(a_.call("POST", "/runs/" + run + "/cancel").status, 202);
  ASSERT_TRUE(a_.h.run_to_end(run));
  const auto made = plan();
  EXPECT_TRUE(made["last_success"].is_null());
  ASSERT_EQ(made["freed_before"].size(), 1U) << made["freed_before"];
  EXPECT_EQ(made["freed_before"][0]["node"], "n2");
}

TEST_F(OverviewTest, WhatAnInterruptedNodeFreedIsNotKnown) {
  const auto run = started(a_.planned());
  ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").running.has_value(); }));
  a_.h.cluster.restart("n2");
  ASSERT_TRUE(a_.h.run_to_end(run));
  const auto made = plan();
  ASSERT_EQ(made["freed_before"].size(), 2U) << made["freed_before"];
  EXPECT_EQ(made["freed_before"][0]["node"], "n1");
  EXPECT_EQ(made["freed_before"][1]["node"], "n3");
  EXPECT_EQ(made["last_success"]["run"], run);
  EXPECT_TRUE(made["last_success"]["space_saved"].is_null());
}

TEST_F(OverviewTest, APlanOfAPausedClusterSaysSo) {
  EXPECT_TRUE(plan()["cluster_pause"].is_null());
  ASSERT_EQ(a_.call("POST", "/clusters/prod/pause",
                    {{"until", "2024-06-03T00:00:00Z"}, {"reason", "audit"}})
                .status,
            202);
  const auto pause = plan()["cluster_pause"];
  EXPECT_EQ(pause["until"], "2024-06-03T00:00:00Z");
  EXPECT_EQ(pause["reason"], "audit");
}

TEST_F(OverviewTest, TheListTellsOfEachClusterWhoLeadsWhatRunsAndWhenItSucceeded) {
  auto cluster = listed("?look=true");
  EXPECT_EQ(cluster["look"]["leader"], "n1");
  EXPECT_EQ(cluster["look"]["nodes_up"], 3);
  EXPECT_TRUE(cluster["active_run"].is_null());
  EXPECT_TRUE(cluster["last_success"].is_null());
  const auto done = started(a_.planned());
  ASSERT_TRUE(a_.h.run_to_end(done));
  a_.h.cluster.scavenge_takes = std::chrono::hours(1);
  const auto active = started(a_.planned());
  a_.h.cluster.node("n3").up = false;
  cluster = listed("?look=true&limit=50");
  EXPECT_EQ(cluster["look"]["nodes_down"], 1);
  EXPECT_EQ(cluster["active_run"]["id"], active);
  EXPECT_EQ(cluster["last_success"]["run"], done);
  EXPECT_FALSE(listed().contains("look")) << "no node is queried unless requested";
  EXPECT_EQ(ApiHarness::json_of(a_.call("GET", "/clusters?look=true&limit=500"))["clusters"].size(),
            1U);
}

TEST_F(OverviewTest, AClusterIsChangedInPlace) {
  const auto changed = ApiHarness::json_of(
      a_.call("PATCH", "/clusters/prod", {{"labels", {{"tier", "gold"}, {"team", "a"}}}}));
  EXPECT_EQ(changed["labels"]["tier"], "gold");
  const auto again = a_.call("PATCH", "/clusters/prod", {{"remove_labels", {"team"}}});
  EXPECT_EQ(ApiHarness::json_of(again)["labels"], json({{"tier", "gold"}}));
  EXPECT_EQ(a_.call("PATCH", "/clusters/prod", {{"remove_labels", {"team"}}}).status, 400);
  EXPECT_EQ(a_.call("PATCH", "/clusters/nowhere", {{"labels", {{"a", "b"}}}}).status, 404);
  EXPECT_EQ(a_.call("PATCH", "/clusters/prod", {{"lables", {{"a", "b"}}}}).status, 400);
  const auto elsewhere =
      a_.call("PATCH", "/clusters/prod", {{"nodes", {{{"node", "http://10.0.0.7:9"}}}}});
  EXPECT_EQ(ApiHarness::code_of(elsewhere), "cluster_unreachable") << elsewhere.body;
  EXPECT_EQ(a_.get("/clusters/prod")["nodes"].size(), 3U);
  // What is journaled is there after a restart, with the pause it had.
  ASSERT_EQ(a_.call("POST", "/clusters/prod/pause").status, 202);
  ASSERT_EQ(a_.call("PATCH", "/clusters/prod", {{"labels", {{"tier", "silver"}}}}).status, 200);
  a_.crash();
  a_.boot();
  EXPECT_EQ(listed()["labels"]["tier"], "silver");
  EXPECT_EQ(listed()["paused"], true);
}

TEST_F(OverviewTest, TheNodesOfAClusterStayWhileARunWorksOnThem) {
  a_.h.cluster.scavenge_takes = std::chrono::hours(1);
  started(a_.planned());
  const auto one = a_.get("/clusters/prod")["nodes"][0]["node"];
  EXPECT_EQ(ApiHarness::code_of(
                a_.call("PATCH", "/clusters/prod", {{"nodes", {{{"name", "n1"}, {"node", one}}}}})),
            "run_active");
  EXPECT_EQ(a_.call("PATCH", "/clusters/prod", {{"labels", {{"tier", "gold"}}}}).status, 200);
}

TEST_F(OverviewTest, ARunThatWaitsForAWindowSaysWhenItResumesAndHowLongItTakesThen) {
  ASSERT_EQ(a_.call("PUT", "/policies/nightly",
                    {{"yaml",
                      "name: nightly\nclusters: [prod]\n"
                      "windows: {allow: [{from: '03:00', to: '07:00', zone: UTC}]}\n"}})
                .status,
            200);
  const auto run = started(plan({{"policy", "nightly"}})["hash"]);
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.state(run).status == RunStatus::kWaiting; }));
  const auto end = a_.get("/runs/" + run)["expected_end"];
  ASSERT_TRUE(end.is_object());
  EXPECT_EQ(end["resumes_at"], "2024-06-02T03:00:00Z");
  EXPECT_GT(end["earliest"], "2024-06-02T03:00:00Z");
  EXPECT_LE(end["seconds_left"]["min"], end["seconds_left"]["max"]);
  EXPECT_EQ(a_.get("/runs/" + run)["hours"],
            (json{{"open", false}, {"until", "2024-06-02T03:00:00Z"}}));
  ASSERT_TRUE(a_.h.run_to_end(run, std::chrono::hours(24)));
  EXPECT_EQ(a_.get("/runs/" + run)["hours"], nullptr) << "an ended run waits for no window";
}

TEST_F(OverviewTest, ARunIsResumedForOnceAlthoughItsWindowIsClosed) {
  ASSERT_EQ(a_.call("PUT", "/policies/nightly",
                    {{"yaml",
                      "name: nightly\nclusters: [prod]\n"
                      "windows: {allow: [{from: '03:00', to: '07:00', zone: UTC}]}\n"}})
                .status,
            200);
  const auto run = started(plan({{"policy", "nightly"}})["hash"]);
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.state(run).status == RunStatus::kWaiting; }));
  const auto path = "/runs/" + run + "/resume";
  EXPECT_EQ(a_.call("POST", path, {{"ignore_hours", true}}).status, 400) << "it needs a reason";
  EXPECT_EQ(a_.call("POST", path).status, 409) << "it is not paused";
  ASSERT_EQ(a_.call("POST", path, {{"ignore_hours", true}, {"reason", "disk is filling"}}).status,
            202);
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.cluster.node("n2").running.has_value(); }));
  EXPECT_EQ(a_.get("/runs/" + run)["ignores_hours"], true);
  EXPECT_EQ(a_.get("/runs/" + run)["hours"], nullptr) << "they do not bind it";
  // Also by the next controller; and the audit shows who requested it, and why.
  a_.crash();
  a_.boot();
  ASSERT_TRUE(a_.h.run_to_end(run));
  EXPECT_LT(a_.h.time.now().value(), parse_ticks("2024-06-02T03:00:00Z").value().value());
  EXPECT_THAT(a_.get("/events?run=" + run).dump(), HasSubstr("disk is filling"));
  EXPECT_THAT(a_.get("/audit").dump(), HasSubstr("disk is filling"));
  // Another run of the same policy waits.
  const auto next = started(plan({{"policy", "nightly"}})["hash"]);
  EXPECT_TRUE(a_.h.run_until([&] { return a_.h.state(next).status == RunStatus::kWaiting; }));
}

TEST_F(OverviewTest, AStepThatACancelStoppedTakesNoTimeAfterTheRun) {
  a_.h.cluster.scavenge_takes = std::chrono::minutes(5);
  const auto run = started(a_.planned());
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.cluster.node("n2").running.has_value(); }));
  ASSERT_EQ(a_.call("POST", "/runs/" + run + "/cancel").status, 202);
  ASSERT_TRUE(a_.h.run_to_end(run));
  const auto ended = a_.get("/runs/" + run)["stages"].dump();
  a_.h.run_until([] { return false; }, std::chrono::minutes(10));
  EXPECT_EQ(a_.get("/runs/" + run)["stages"].dump(), ended);
}

TEST_F(OverviewTest, ARunTellsWhereItsTimeWent) {
  a_.h.cluster.scavenge_takes = std::chrono::minutes(5);
  const auto run = started(a_.planned());
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.cluster.node("n2").running.has_value(); }));
  ASSERT_EQ(a_.call("POST", "/runs/" + run + "/pause", {{"mode", "drain"}}).status, 202);
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.state(run).status == RunStatus::kPaused; }));
  a_.h.run_until([] { return false; }, std::chrono::minutes(10));
  ASSERT_EQ(a_.call("POST", "/runs/" + run + "/resume").status, 202);
  ASSERT_TRUE(a_.h.run_to_end(run));
  const auto shown = a_.get("/runs/" + run);
  const auto& timeline = shown["report"]["timeline"];
  const auto part = [&](const char* name) { return timeline.at(name).get<double>(); };
  EXPECT_NEAR(part("scavenge_seconds"), 15 * 60, 30) << timeline.dump();
  EXPECT_NEAR(part("paused_seconds"), 600, 30) << timeline.dump();
  EXPECT_NEAR(part("total_seconds"),
              part("scavenge_seconds") + part("other_steps_seconds") + part("waiting_seconds") +
                  part("preparing_seconds") + part("paused_seconds"),
              5)
      << timeline.dump();
  for (const auto& stage : shown["stages"]) {
    for (const auto& step : stage["steps"]) {
      if (step["kind"] == "scavenge") {
        EXPECT_NEAR(step["timeline"]["observing_seconds"].get<double>(), 300, 30) << step.dump(1);
      }
    }
  }
}

TEST_F(OverviewTest, AllMembersAreInOneCase) {
  const auto hash = a_.planned();
  const auto run = started(hash);
  ASSERT_TRUE(a_.h.run_to_end(run));
  for (const auto& path :
       {std::string("/clusters/prod"), std::string("/clusters?look=true"), std::string("/runs"),
        std::string("/events"), std::string("/audit"), "/plans/" + hash, "/runs/" + run}) {
    EXPECT_THAT(test::not_snake_case(a_.get(path), path), ::testing::IsEmpty());
  }
  const auto openapi = a_.get("/openapi.json");
  std::size_t members = 0;
  for (const auto& [name, schema] : openapi.at("components").at("schemas").items()) {
    const json properties = schema.value("properties", json::object());
    // Their schemas have the keywords of JSON schema, which are in camelCase.
    for (const auto& [member, of] : properties.items()) {
      ++members;
      EXPECT_THAT(test::not_snake_case({{member, nullptr}}, name), ::testing::IsEmpty());
    }
  }
  EXPECT_GT(members, 100U);
}

}  // namespace
}  // namespace verger::controller
