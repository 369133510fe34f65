#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e/certificate_rollout/rollout_case.h"

/// A process that dies in the middle of a change: all nodes have the new certificates, or all the
/// old.
namespace verger::test {
namespace {

using std::chrono::seconds;

struct Kill {
  enum class Who : std::uint8_t { kController, kAgent } who;
  const char* failpoint;  ///< "name" or "name:nth"
};
void PrintTo(const Kill& kill, std::ostream* out) { *out << kill.failpoint; }

class RolloutKill : public RolloutCase, public ::testing::WithParamInterface<Kill> {
 protected:
  RolloutKill() : RolloutCase(options_of({.separate_agents = true, .role = "node"})) {}
  /// Restarted at once, without the failpoint, by the wait for the run.
  void expect_whole(const nlohmann::json& run, const Serials& before,
                    const std::array<std::string, RealCluster::kNodes>& files) {
    ASSERT_TRUE(run.is_object()) << "the run did not end" << cluster_.logs();
    if (run.at("state") == "done") {
      expect_changed(run, before);
    } else {
      expect_as_before(run, before, files);
    }
  }
};

TEST_P(RolloutKill, LeavesNoClusterHalfWay) {
  const auto [who, failpoint] = GetParam();
  const auto reached = directory_.path() / "reached";
  const Environment deadly{{"VERGER_FAILPOINT", failpoint},
                           {"VERGER_FAILPOINT_LOG", reached.string()}};
  start();
  const auto before = served();
  const auto files = live_files();
  if (who == Kill::Who::kController) {
    cluster_.controller().kill();
    cluster_.start_controller(deadly);
  } else {
    cluster_.agent(1).kill();
    cluster_.start_agent(1, deadly);
  }
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  const auto run = roll_out("house");
  const std::string armed = failpoint;
  EXPECT_NE(file_text(reached).find(armed.substr(0, armed.find(':'))), std::string::npos)
      << "never reached: " << failpoint;
  expect_whole(run, before, files);
  fmt::print("{}: {}\n", failpoint, run.value("state", std::string()));
}

INSTANTIATE_TEST_SUITE_P(
    Controller, RolloutKill,
    ::testing::Values(Kill{Kill::Who::kController, "controller.certificate_stage.after-act"},
                      Kill{Kill::Who::kController, "controller.certificate_switch.before-intent"},
                      Kill{Kill::Who::kController, "controller.certificate_switch.after-intent:2"},
                      Kill{Kill::Who::kController, "controller.certificate_switch.after-act:2"},
                      Kill{Kill::Who::kController, "controller.certificate_prove.after-intent"}));
// The second operation of an agent is the switch of its leaf.
INSTANTIATE_TEST_SUITE_P(Agent, RolloutKill,
                         ::testing::Values(Kill{Kill::Who::kAgent, "agent.operation.accepted:2"},
                                           Kill{Kill::Who::kAgent, "agent.operation.before-act:2"},
                                           Kill{Kill::Who::kAgent, "agent.operation.after-act:2"},
                                           Kill{Kill::Who::kAgent,
                                                "agent.outcome.after-journal:2"}));

class RolloutDeath : public RolloutKill {};

TEST_F(RolloutDeath, ANodeThatDiesBetweenStageAndSwitchIsWaitedForWithNothingSwitched) {
  start();
  const auto before = served();
  // vergerd dies with everything staged and nothing switched; then a node does.
  cluster_.controller().kill();
  const Environment deadly{{"VERGER_FAILPOINT", "controller.certificate_switch.before-intent"}};
  cluster_.start_controller(deadly);
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  const auto id = start_rollout("house");
  ASSERT_TRUE(eventually(seconds(60), [&] { return !cluster_.controller().running(); }))
      << cluster_.logs();
  const auto staged = live_files();
  cluster_.node(1).kill();
  cluster_.start_controller();
  std::string shown;
  ASSERT_TRUE(eventually(seconds(60),
                         [&] {
                           shown = cluster_.verger({"run", "show", id}).out;
                           return shown.contains("waiting") && shown.contains("n2");
                         }))
      << shown << cluster_.logs();
  EXPECT_EQ(live_files(), staged) << "nothing is switched without it";
  expect_changed(cluster_.wait_for_run(id, seconds(120)), before);  // starts it again
}

}  // namespace
}  // namespace verger::test
