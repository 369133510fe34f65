#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "tests/e2e/growth/growing_cluster.h"

/// vergerd, or the agent of the new machine, killed (SIGKILL) while a node joins: the run ends, and
/// the node is a member that has everything.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

struct Kill {
  enum class Who : std::uint8_t { kController, kNewAgent } who;
  const char* failpoint;
};
void PrintTo(const Kill& kill, std::ostream* out) { *out << kill.failpoint; }

class KilledGrowth : public GrowingCluster, public ::testing::WithParamInterface<Kill> {
 protected:
  Environment deadly(Kill::Who who) const {
    return GetParam().who == who
               ? Environment{{"VERGER_FAILPOINT", GetParam().failpoint},
                             {"VERGER_FAILPOINT_LOG", (directory_.path() / "reached").string()}}
               : Environment{};
  }
  bool was_reached() const {
    return file_text(directory_.path() / "reached").contains(GetParam().failpoint);
  }
  /// Follows the run to its end; what dies is started again.
  json ended(const std::string& id, NewMachine& machine) {
    json run;
    eventually(seconds(150), [&] {
      cluster_.restart_dead();
      machine.restart_dead();
      auto seen = cluster_.verger_json({"run", "show", id});
      if (seen.is_object()) {
        run = std::move(seen);
      }
      const auto state = run.is_object() ? run.value("state", std::string()) : std::string();
      return state == "done" || state == "failed" || state == "cancelled";
    });
    return run;
  }

  TempDirectory directory_;
};

TEST_P(KilledGrowth, EndsWithAMemberThatHasEverything) {
  start_and_back_up();
  writer_->stop();
  NewMachine machine(cluster_, "n4", /*read_only_replica=*/true, deadly(Kill::Who::kNewAgent));
  if (GetParam().who == Kill::Who::kController) {
    cluster_.controller().kill();
    cluster_.start_controller(deadly(Kill::Who::kController));
  }
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  const auto id = cluster_.start_run("growth", {"--name", "n4", "--node", machine.url(), "--agent",
                                                machine.agent_url(), "--repository", "main"});
  const auto run = ended(id, machine);
  ASSERT_TRUE(run.is_object()) << cluster_.logs();
  EXPECT_TRUE(was_reached()) << "never reached: " << GetParam().failpoint;
  EXPECT_EQ(run.value("state", ""), "done") << run.dump(1) << machine.logs() << cluster_.logs();
  EXPECT_EQ(run.at("report").value("outcome", ""), "joined") << run.dump(1);
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return written_steadily_at(caller_, machine.url()) == writer_->written();
  })) << machine.logs();
}

INSTANTIATE_TEST_SUITE_P(
    Controller, KilledGrowth,
    ::testing::Values(Kill{Kill::Who::kController, "controller.join_start.after-act"},
                      Kill{Kill::Who::kController, "controller.join_register.before-outcome"}));
INSTANTIATE_TEST_SUITE_P(NewAgent, KilledGrowth,
                         ::testing::Values(Kill{Kill::Who::kNewAgent, "restore.after-switch"},
                                           Kill{Kill::Who::kNewAgent, "agent.restore.in-place"}));

}  // namespace
}  // namespace verger::test
