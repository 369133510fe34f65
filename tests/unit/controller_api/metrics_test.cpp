#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  ApiHarness a_;
};

TEST_F(MetricsTest, MetricsTellWhatAPersonWouldBeWokenFor) {
  a_.h.cluster.scavenge_takes = std::chrono::minutes(1);
  EXPECT_THAT(a_.call("GET", "/metrics").body,
              HasSubstr("verger_runs{cluster=\"prod\",outcome=\"failed\"} 0"));
  const auto run = ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"));
  const std::string id = run["id"];
  ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").last_finished.has_value(); }));
  a_.h.cluster.node("n3").up = false;
  a_.h.run_until([] { return false; }, std::chrono::minutes(2));
  a_.get("/clusters/prod");  // looks at the nodes
  const auto waiting = a_.call("GET", "/metrics").body;
  EXPECT_THAT(waiting, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"active\"} 1"));
  EXPECT_THAT(waiting,
              HasSubstr("verger_step_waiting_seconds{cluster=\"prod\",gate=\"voters-alive\"}"));
  EXPECT_THAT(waiting, HasSubstr("verger_node_up{cluster=\"prod\",node=\"n3\"} 0"));
  EXPECT_THAT(waiting, HasSubstr("verger_agent_up{cluster=\"prod\",node=\"n3\"} 1"));
  EXPECT_THAT(waiting, HasSubstr("verger_node_stays_down{cluster=\"prod\",node=\"n3\"} 0"));
  a_.h.cluster.node("n3").up = true;
  ASSERT_TRUE(a_.h.run_to_end(id));
  const auto done = a_.call("GET", "/metrics");
  EXPECT_EQ(done.headers.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(done.body, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"done\"} 1"));
  EXPECT_THAT(
      done.body,
      HasSubstr("verger_last_success_timestamp_seconds{cluster=\"prod\",operation=\"scavenge\"}"));
}

TEST_F(MetricsTest, AScrapeShowsWhatWasLastObservedAndQueriesNoNode) {
  ASSERT_EQ(a_.call("GET", "/clusters/prod").status, 200);
  a_.h.cluster.node("n3").up = false;
  int asked = 0;
  a_.h.cluster.fate = [&](const auto&, const auto&) {
    ++asked;
    return std::nullopt;
  };
  a_.h.cluster.dress = [&](const auto&, const auto&, auto&) { ++asked; };
  const auto before = a_.call("GET", "/metrics").body;
  EXPECT_EQ(asked, 0);
  EXPECT_THAT(before, HasSubstr("verger_node_up{cluster=\"prod\",node=\"n3\"} 1"));
  const std::string observed = "verger_cluster_observed_timestamp_seconds{cluster=\"prod\"} ";
  const auto time_in = [&](const std::string& text) {
    const auto at = text.find(observed);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? 0.0 : std::stod(text.substr(at + observed.size()));
  };
  ASSERT_EQ(a_.call("GET", "/clusters/prod").status, 200);
  const auto after = a_.call("GET", "/metrics").body;
  EXPECT_GT(asked, 0);
  EXPECT_THAT(after, HasSubstr("verger_node_up{cluster=\"prod\",node=\"n3\"} 0"));
  EXPECT_GT(time_in(after), time_in(before));
}

TEST_F(MetricsTest, ARunThatLeavesDifferingNodesIsNoSuccess) {
  a_.h.cluster.node("n3").digest = "bb";
  a_.h.cluster.node("n3").readable_digest = "ss";
  const std::string id =
      ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"))["id"];
  ASSERT_TRUE(a_.h.run_to_end(id));
  const auto run = a_.get("/runs/" + id);
  EXPECT_EQ(run["state"], "done-with-differences");
  EXPECT_EQ(run["report"]["readable_equal"], false);
  EXPECT_THAT(run["report"]["differences"].dump(), HasSubstr("n1, n2 against n3"));
  const auto metrics = a_.call("GET", "/metrics").body;
  EXPECT_THAT(metrics,
              HasSubstr("verger_runs{cluster=\"prod\",outcome=\"done-with-differences\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"done\"} 0"));
  EXPECT_THAT(metrics,
              HasSubstr("verger_last_differences_timestamp_seconds{cluster=\"prod\",operation="));
  EXPECT_THAT(metrics, Not(HasSubstr("verger_last_success_timestamp_seconds{")));
}

TEST_F(MetricsTest, ABackupLeavesItsTimesAndSize) {
  a_.h.cluster.backups = std::make_unique<test::FakeBackups>(a_.h.time);
  EXPECT_THAT(a_.call("GET", "/metrics").body, Not(HasSubstr("verger_backup_")));
  const auto plan = a_.call(
      "POST", "/clusters/prod/plans",
      {{"operation", "backup"}, {"parameters", {{"repository", "main"}, {"drill_every", 1}}}});
  ASSERT_EQ(plan.status, 201) << plan.body;
  const std::string hash = ApiHarness::json_of(plan)["hash"];
  const std::string id = ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply"))["id"];
  ASSERT_TRUE(a_.h.run_to_end(id));
  const auto run = a_.get("/runs/" + id);
  EXPECT_EQ(run["report"]["outcome"], "done") << run;
  EXPECT_EQ(run["report"]["backups"][0]["generation"], "g1");
  const auto metrics = a_.call("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("verger_backup_bytes{cluster=\"prod\"} 1000000"));
  EXPECT_THAT(metrics,
              HasSubstr("verger_backup_last_success_timestamp_seconds{cluster=\"prod\"} "));
  EXPECT_THAT(metrics, HasSubstr("verger_backup_last_drill_timestamp_seconds{cluster=\"prod\"} "));
}

TEST_F(MetricsTest, AFailedRunLeavesTheTimeOfItsFailure) {
  a_.h.cluster.node("n2").next_ends = std::vector<std::string>(20, "Errored");
  const std::string id =
      ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"))["id"];
  ASSERT_TRUE(a_.h.run_until([&] { return a_.h.state(id).status == RunStatus::kFailed; },
                             std::chrono::hours(2)));
  const auto metrics = a_.call("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("verger_runs{cluster=\"prod\",outcome=\"failed\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("verger_last_failure_timestamp_seconds{cluster=\"prod\","));
}

}  // namespace
}  // namespace verger::controller
