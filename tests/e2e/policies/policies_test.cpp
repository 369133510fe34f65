#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/temp_directory.h"

// Real processes: a freeze written as a policy holds a person's run, and lets it go when it is
// gone.
namespace verger::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

/// The day `days` from now, "2024-06-02".
std::string day(int days) {
  const auto ticks = system_clock().now().value() + days * 86'400 * kTicksPerSecond;
  return format_ticks(Ticks(ticks)).substr(0, 10);
}

std::string written(const TempDirectory& directory, const std::string& text) {
  const auto path = directory.path() / "policy.yaml";
  std::ofstream(path) << text;
  return path.string();
}

TEST(Policies, AFreezeHoldsARunUntilItIsDeleted) {
  RealCluster cluster;
  cluster.start_all();
  cluster.register_cluster();
  SCOPED_TRACE(cluster.logs());
  const TempDirectory directory;

  const auto wrong = cluster.verger(
      {"policy", "validate", written(directory, "name: freeze\nclusters: [orders]\nwindow: {}\n")});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("line 3: window is not a key here; did you mean windows?"));

  const auto file = written(
      directory, fmt::format("name: freeze\nclusters: [orders]\nwindows:\n  deny:\n    - {{name: "
                             "freeze, from: \"{}\", to: \"{}\", zone: UTC}}\n",
                             day(-1), day(2)));
  EXPECT_EQ(cluster.verger({"policy", "diff", file}).status, 1) << "it is new";
  const auto applied = cluster.verger({"policy", "apply", file});
  ASSERT_EQ(applied.status, 0) << applied.err;
  EXPECT_EQ(cluster.verger({"policy", "diff", file}).status, 0);
  const auto next = cluster.verger({"schedule", "next", "orders", "--zone", "Europe/Berlin"});
  EXPECT_THAT(next.out, HasSubstr("opens"));
  EXPECT_THAT(next.out, HasSubstr(day(2)));

  const auto id = cluster.start_scavenge_run();
  const auto waits = [&] {
    const auto run = cluster.verger_json({"run", "show", id});
    return run.is_object() && run.at("state") == "waiting";
  };
  ASSERT_TRUE(eventually(seconds(20), waits));
  const auto shown = cluster.verger({"run", "show", id});
  EXPECT_THAT(shown.out, HasSubstr("hours"));
  EXPECT_THAT(shown.out, HasSubstr("freeze"));

  // The controller's death changes nothing of that.
  cluster.controller().kill();
  cluster.restart_dead();
  ASSERT_TRUE(eventually(seconds(20), waits));
  ASSERT_EQ(cluster.verger({"policy", "delete", "freeze"}).status, 0);
  const auto run = cluster.wait_for_run(id, seconds(90));
  ASSERT_TRUE(run.is_object());
  EXPECT_EQ(run.at("state"), "done") << run.dump(1);

  const auto audit = cluster.verger({"audit", "export"});
  EXPECT_THAT(audit.out, HasSubstr("\"route\":\"applyPolicy\""));
  EXPECT_THAT(audit.out, HasSubstr("\"route\":\"deletePolicy\""));
  const auto verified = cluster.verger({"audit", "verify"});
  EXPECT_EQ(verified.status, 0) << verified.err;
}

}  // namespace
}  // namespace verger::test
