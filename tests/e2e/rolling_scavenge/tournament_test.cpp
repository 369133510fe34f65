#include <gtest/gtest.h>
#include <string>

#include "tests/e2e/rolling_scavenge/checks.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/temp_directory.h"

/// A process is killed (SIGKILL) at a named place of a run and started again; the run must end
/// right. Which place was reached is written by the process itself, in a file, before it dies.
namespace verger::test {
namespace {

using std::chrono::seconds;

enum class Victim : std::uint8_t { kController, kNode };

struct Case {
  Victim victim;
  const char* failpoint;  ///< "name" or "name:nth"
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.failpoint; }

class Tournament : public testing::TestWithParam<Case> {};

TEST_P(Tournament, EndsRightAfterAKill) {
  const auto [victim, failpoint] = GetParam();
  const TempDirectory directory;
  const auto reached = directory.path() / "reached";
  const Environment deadly{{"VERGER_FAILPOINT", failpoint},
                           {"VERGER_FAILPOINT_LOG", reached.string()}};
  RealCluster cluster;
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    cluster.start_node(i);
  }
  cluster.start_controller();
  cluster.register_cluster();
  // The failpoint is armed for the run only: the victim starts again with it, which also shows
  // that a restart before the run does no harm.
  if (victim == Victim::kController) {
    cluster.controller().kill();
    cluster.start_controller(deadly);
  } else {
    cluster.node(0).kill();
    cluster.start_node(0, deadly);
  }
  ASSERT_EQ(cluster.wait_until_settled(), "");
  const std::string armed = failpoint;
  const auto name = armed.substr(0, armed.find(':'));
  const auto was_reached = [&] { return file_text(reached).contains(name); };
  auto run = cluster.wait_for_run(cluster.start_scavenge_run(), seconds(120));
  // On a busy machine nodes elect another leader in the middle of a run, and none has to resign.
  const bool of_leader = name.starts_with("controller.resign.");
  for (int more = 0; of_leader && more < 2 && !was_reached(); ++more) {
    expect_a_good_end(run);
    run = cluster.wait_for_run(cluster.start_scavenge_run(), seconds(120));
  }
  SCOPED_TRACE(cluster.logs());
  EXPECT_TRUE(was_reached()) << "never reached: " << failpoint;
  expect_a_good_end(run);
  EXPECT_EQ(cluster.wait_until_settled(), "");
}

constexpr Case kController[] = {
    {Victim::kController, "controller.scavenge.before-permit"},
    {Victim::kController, "controller.scavenge.before-intent"},
    {Victim::kController, "controller.scavenge.after-intent"},
    {Victim::kController, "controller.scavenge.after-act"},
    {Victim::kController, "controller.scavenge.before-outcome"},
    {Victim::kController, "controller.scavenge.after-outcome"},
    {Victim::kController, "controller.scavenge.after-act:2"},
    {Victim::kController, "controller.resign.before-intent"},
    {Victim::kController, "controller.resign.after-intent"},
    {Victim::kController, "controller.resign.after-act"},
    {Victim::kController, "controller.resign.before-outcome"},
    {Victim::kController, "controller.set_priority.after-intent"},
    {Victim::kController, "controller.set_priority.after-act"},
    {Victim::kController, "controller.set_priority.after-act:2"},
    {Victim::kController, "controller.record_digest.after-intent"},
    {Victim::kController, "controller.digest.after-act"},
    {Victim::kController, "controller.compare_digests.after-act"},
};
constexpr Case kNode[] = {
    {Victim::kNode, "agent.operation.accepted"},
    {Victim::kNode, "agent.operation.before-act"},
    {Victim::kNode, "agent.operation.after-act"},
    {Victim::kNode, "agent.outcome.after-journal"},
    {Victim::kNode, "log.complete-chunk.before-footer"},
    {Victim::kNode, "log.complete-chunk.after-footer"},
    {Victim::kNode, "log.new-chunk.after-create"},
    {Victim::kNode, "scavenge.accumulate.before-commit"},
    {Victim::kNode, "scavenge.calculate.before-commit"},
    {Victim::kNode, "log.switch.after-rename"},
    {Victim::kNode, "scavenge.execute.after-switch"},
    {Victim::kNode, "scavenge.execute.after-weight-reset"},
    {Victim::kNode, "scavenge.merge.after-switch"},
    {Victim::kNode, "scavenge.index.after-table"},
    {Victim::kNode, "scavenge.clean.before-commit"},
    {Victim::kNode, "scavenge.done.before-commit"},
    {Victim::kNode, "node.commit.before-index:3"},
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.failpoint;
  for (auto& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      c = '_';
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Controller, Tournament, testing::ValuesIn(kController), name_of);
INSTANTIATE_TEST_SUITE_P(Node, Tournament, testing::ValuesIn(kNode), name_of);

}  // namespace
}  // namespace verger::test
