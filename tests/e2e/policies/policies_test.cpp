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
  EXPECT_THAT(shown.out, HasSubstr("maintenance-window"));
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

  // An attacker who can write the journal's file changes who it was.
  cluster.controller().signal(SIGTERM);
  ASSERT_TRUE(cluster.controller().wait(seconds(30)).has_value());
  const auto journal = cluster.controller_directory() / "journal.db";
  auto bytes = file_text(journal);
  const auto begin = bytes.find("\"route\":\"deletePolicy\"");
  ASSERT_NE(begin, std::string::npos);
  bytes.replace(begin + 9, 6, "forget");
  std::ofstream(journal, std::ios::binary) << bytes;
  cluster.start_controller();
  ASSERT_TRUE(eventually(seconds(20), [&] { return cluster.verger({"run", "list"}).status == 0; }));
  for (const auto* verb : {"verify", "export"}) {
    const auto broken = cluster.verger({"audit", verb});
    EXPECT_EQ(broken.status, 1) << verb;
    EXPECT_THAT(broken.err, HasSubstr("is not what was written")) << verb;
  }
}

}  // namespace
}  // namespace verger::test
