#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/views.h"
#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ReportTest : public ::testing::Test {
 protected:
  ApiHarness a_;
};

TEST_F(ReportTest, TheReportHoldsWhatWasSeen) {
  const auto id = a_.run_to_its_end();
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

TEST_F(ReportTest, TheReportComparesTheSizesOfTheSameChunksAndTellsEachNodesOwnSavings) {
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
  const auto report = a_.get("/runs/" + a_.run_to_its_end())["report"];
  ASSERT_THAT(report["nodes"], SizeIs(3));
  for (const auto& node : report["nodes"]) {
    const auto before = node["bytes_before"].get<std::int64_t>();
    EXPECT_EQ(node["bytes_after"].get<std::int64_t>(), before / 2) << node;
    EXPECT_EQ(node["space_saved"], 100) << node;
  }
  EXPECT_EQ(report["nodes"][2]["bytes_before"], 1'030'000);
}

TEST_F(ReportTest, TheReportTellsAtWhichPointEachNodeIs) {
  a_.h.cluster.acted = [&](const test::FakeNode& node, const http::Request& request) {
    if (node.name == "n1" && request.target == "/agent/v1/operations" &&
        request.body.contains("\"threads\"")) {
      a_.h.cluster.points.push_back(9'000);  // another scavenge took n2 further meanwhile
      a_.h.cluster.node("n2").last_finished = 1;
    }
  };
  const auto run = a_.get("/runs/" + a_.run_to_its_end());
  EXPECT_EQ(run["state"], "done-with-differences");
  const auto& report = run["report"];
  EXPECT_EQ(report["point"]["number"], 0);
  for (const auto& node : report["nodes"]) {
    EXPECT_EQ(node["point"]["number"], node["name"] == "n2" ? 1 : 0) << node;
  }
}

TEST_F(ReportTest, TheReportHasBothSizesWhereTheChunkOfThePointWasMergedWithOlderOnes) {
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
  const auto report = a_.get("/runs/" + a_.run_to_its_end())["report"];
  ASSERT_THAT(report["nodes"], SizeIs(3));
  for (const auto& node : report["nodes"]) {
    EXPECT_EQ(node["bytes_before"], 1'070'000) << node;
    EXPECT_EQ(node["bytes_after"], 600'000) << node;
    EXPECT_EQ(node["chunks_compared"], 5) << node;
  }
}

TEST_F(ReportTest, AStepThatIsNotNeededLeavesWhatTheNodeReportedBefore) {
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
  state.steps["again-n2"].result =
      JsonObject::parse(R"({"already":true,"point":{"number":0,"position":1000}})");
  const auto report = views::report(state);
  for (const auto& node : report["nodes"]) {
    EXPECT_EQ(node["bytes_after"], 1'000'000) << node;
    EXPECT_EQ(node["space_saved"], 100) << node;
  }
}

TEST_F(ReportTest, OneNodeHasNoOtherToCompareWith) {
  auto state = a_.h.state(a_.run_to_its_end());
  auto plan = *state.plan;
  for (auto& stage : plan.stages) {
    for (auto& group : stage.groups) {
      std::erase_if(group, [](const planner::Step& step) {
        return step.node != "n1" || step.kind != "scavenge";
      });
    }
  }
  state.plan = std::make_shared<const planner::Plan>(plan);
  EXPECT_THAT(views::report(state)["notes"].dump(),
              HasSubstr("digests were not compared: there is no other node to compare with"));
}

TEST_F(ReportTest, NothingIsSaidOfWhatASkippedScavengeFreed) {
  auto state = a_.h.state(a_.run_to_its_end());
  auto plan = *state.plan;
  auto& group = plan.stages.back().groups.emplace_back();
  group.push_back(plan.stages.front().groups.front().front());
  group.front().id = "own-n2";
  group.front().node = "n2";
  group.front().kind = "scavenge";
  state.plan = std::make_shared<const planner::Plan>(plan);
  state.steps["own-n2"].status = StepStatus::kSkipped;
  const auto freed_by_n2 = [&state](int before) {
    for (auto& [id, step] : state.steps) {
      if (step.result->contains("space_saved")) {
        step.result = step.result.merged_with(nlohmann::json{{"space_saved", before}});
      }
    }
    const auto report = views::report(state);
    EXPECT_THAT(report["notes"].dump(), HasSubstr("not scavenged: n2"));
    EXPECT_EQ(report["nodes"][0]["space_saved"], before);
    return report["nodes"][1]["space_saved"];
  };
  EXPECT_TRUE(freed_by_n2(0).is_null());
  EXPECT_EQ(freed_by_n2(100), 100) << "by finishing what had been open";
}

TEST_F(ReportTest, TheReportNamesTheFirstDifferingChunkAndDoesNotCallItCorrupt) {
  a_.h.cluster.node("n3").digest = "bb";
  const auto report = a_.get("/runs/" + a_.run_to_its_end())["report"];
  EXPECT_EQ(report["digests_equal"], false);
  EXPECT_THAT(report["notes"].dump(), HasSubstr("differ first in chunk 1"));
  EXPECT_THAT(report["notes"].dump(), HasSubstr("may rightly differ"));
}

TEST_F(ReportTest, TheReportOfARunThatWasCancelledSaysWhatIsNotDone) {
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

TEST_F(ReportTest, ThereIsNoReportBeforeTheEnd) {
  a_.h.cluster.scavenge_takes = std::chrono::hours(1);
  const auto run = ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply"));
  EXPECT_TRUE(run["report"].is_null());
  const auto again = a_.call("POST", "/plans/" + run["plan"].get<std::string>() + "/apply");
  EXPECT_EQ(ApiHarness::code_of(again), "run_active");
}

}  // namespace
}  // namespace verger::controller
