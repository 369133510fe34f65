#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "tests/unit/controller_api/api_harness.h"

// GET /runs/{id}/gates: what a step waits for, and what it would wait for.
namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;

class RunGates : public ::testing::Test {
 protected:
  /// n3 waits for n1's clock.
  RunGates() {
    a_.h.cluster.scavenge_takes = std::chrono::seconds(20);
    run_ = ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply")).at("id");
    EXPECT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").running.has_value(); }));
    a_.h.cluster.node("n1").clock_ahead = std::chrono::minutes(20);
    EXPECT_TRUE(a_.h.run_until([this] {
      return a_.h.state(run_).steps.at("scavenge-n3").status == StepStatus::kWaiting;
    }));
  }
  json step(const std::string& id) {
    const auto gates = a_.get("/runs/" + run_ + "/gates");
    EXPECT_EQ(gates.at("run"), run_);
    for (const auto& each : gates.at("steps")) {
      if (each.at("step") == id) {
        return each;
      }
    }
    ADD_FAILURE() << id << " is not in " << gates.dump(1);
    return {{"gates", json::array()}};
  }
  static json gate(const json& step, const std::string& name) {
    const auto found = std::ranges::find_if(
        step.at("gates"), [&name](const json& each) { return each.at("gate") == name; });
    EXPECT_NE(found, step.at("gates").end()) << name << " is not in " << step.dump(1);
    return found == step.at("gates").end() ? json::object() : *found;
  }
  std::string run_;
  ApiHarness a_;
};

TEST_F(RunGates, OpenOnesHaveTheirValuesToo) {
  const auto waiting = step("scavenge-n3");
  EXPECT_EQ(waiting["state"], "waiting");
  EXPECT_EQ(waiting["node"], "n3");
  EXPECT_FALSE(waiting["evaluated_at"].is_null());
  const auto closed = gate(waiting, "clocks");
  EXPECT_EQ(closed["state"], "closed");
  EXPECT_EQ(closed["node"], "n1");
  EXPECT_EQ(closed["value"], "1200000 ms");
  EXPECT_EQ(closed["limit"], "60000 ms");
  EXPECT_EQ(closed["severity"], "fault");
  EXPECT_FALSE(closed["since"].is_null());
  EXPECT_GT(closed["alert_at"], closed["since"]);
  EXPECT_THAT(closed["hint"].get<std::string>(), HasSubstr("NTP"));
  const auto open = gate(waiting, "lag-below");
  EXPECT_EQ(open["state"], "open");
  EXPECT_EQ(open["value"], "0 B");
  EXPECT_EQ(open["limit"], "16 MiB");
  EXPECT_TRUE(open["since"].is_null());
  EXPECT_EQ(gate(waiting, "voters-alive")["value"], "3 voters");
  EXPECT_THAT(gate(waiting, "disk")["value"].get<std::string>(), HasSubstr("free"));
  // All gates of the step, in the plan's order.
  const auto plan = a_.get("/runs/" + run_)["plan"].get<std::string>();
  for (const auto& stage : a_.get("/plans/" + plan)["stages"]) {
    for (const auto& each : stage["steps"]) {
      if (each["id"] == "scavenge-n3") {
        ASSERT_EQ(each["gates"].size(), waiting["gates"].size());
        for (std::size_t i = 0; i < each["gates"].size(); ++i) {
          EXPECT_TRUE(each["gates"][i].get<std::string>().starts_with(
              waiting["gates"][i]["gate"].get<std::string>()));
        }
      }
    }
  }
}

TEST_F(RunGates, AStepThatHasBegunKeepsWhatItBeganWith) {
  a_.h.cluster.node("n1").clock_ahead = {};
  ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n3").running.has_value(); }));
  const auto acting = step("scavenge-n3");
  EXPECT_EQ(acting["state"], "acting");
  const auto open = gate(acting, "clocks");
  EXPECT_EQ(open["state"], "open");
  EXPECT_EQ(open["limit"], "60000 ms");
  EXPECT_TRUE(open["since"].is_null());
  EXPECT_EQ(a_.get("/runs/" + run_ + "/gates")["steps"].size(), 1U) << "n2's step has ended";
  ASSERT_TRUE(a_.h.run_to_end(run_));
  EXPECT_EQ(a_.get("/runs/" + run_ + "/gates")["steps"].size(), 0U);
}

TEST_F(RunGates, AfterARestartTheJournalHasTheClosedOnes) {
  a_.crash();
  a_.h.cluster.fate = [](const auto&, const auto&) { return test::Fate::kLost; };
  a_.boot();
  const auto waiting = step("scavenge-n3");
  EXPECT_TRUE(waiting["evaluated_at"].is_null());
  const auto closed = gate(waiting, "clocks");
  EXPECT_EQ(closed["state"], "closed");
  EXPECT_EQ(closed["value"], "1200000 ms");
  EXPECT_FALSE(closed["since"].is_null());
  const auto unknown = gate(waiting, "lag-below");
  EXPECT_EQ(unknown["state"], "unknown");
  EXPECT_EQ(unknown["limit"], "16 MiB");
}

TEST_F(RunGates, OfNodesThatAreSkippedHoldNothingBack) {
  a_.h.cluster.node("n3").clock_ahead = std::chrono::minutes(20);
  ASSERT_EQ(a_.call("POST", "/runs/" + run_ + "/skip", {{"node", "n1"}}).status, 202);
  a_.h.run_until([] { return false; }, std::chrono::seconds(10));
  const auto waiting = step("scavenge-n3");
  std::set<std::string> states;
  for (const auto& each : waiting["gates"]) {
    if (each["gate"] == "clocks") {
      states.insert(each["node"].get<std::string>() + " " + each["state"].get<std::string>());
    }
  }
  EXPECT_EQ(states, (std::set<std::string>{"n1 skipped", "n3 closed"}));
}

/// What a step waited for when its run was paused or ended is shown, and raises no alert.
TEST_F(RunGates, NoAlertIsAnnouncedOfARunThatLooksAtNone) {
  const auto alert_at = [this] {
    for (const auto& stage : a_.get("/runs/" + run_)["stages"]) {
      for (const auto& each : stage["steps"]) {
        if (each["id"] == "scavenge-n3") {
          return each.at("waiting_for").at(0).at("alert_at");
        }
      }
    }
    return json("no such step");
  };
  EXPECT_TRUE(alert_at().is_string());
  ASSERT_EQ(a_.call("POST", "/runs/" + run_ + "/cancel", json::object()).status, 202);
  ASSERT_TRUE(a_.h.run_to_end(run_));
  EXPECT_TRUE(alert_at().is_null()) << alert_at();
}

TEST_F(RunGates, AnUnknownRunHasNone) {
  EXPECT_EQ(a_.call("GET", "/runs/0123456789ab/gates").status, 404);
  const auto wrong = a_.call("POST", "/runs/" + run_ + "/gates");
  EXPECT_EQ(wrong.status, 405);
}

}  // namespace
}  // namespace verger::controller
