#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/e2e/rolling_scavenge/checks.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

void end_controller(RealCluster& cluster) {
  cluster.controller().signal(SIGTERM);
  ASSERT_TRUE(cluster.controller().wait(seconds(30)).has_value());
}

/// Agents obey no older controller than the last; a new journal begins with the oldest.
TEST(LostJournal, IsSaidWithTheWayOutAndTheNextRunIsDone) {
  RealCluster cluster;
  cluster.start_all();
  ASSERT_TRUE(
      eventually(seconds(30), [&] { return cluster.verger({"cluster", "list"}).status == 0; }));
  end_controller(cluster);
  cluster.start_controller();
  cluster.register_cluster();
  ASSERT_TRUE(cluster.wait_for_run(cluster.start_scavenge_run(), seconds(120)).is_object());
  end_controller(cluster);
  const auto journal = cluster.controller_directory() / "journal.db";
  struct stat status{};
  ASSERT_EQ(::stat(journal.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U) << "only its owner may read it";
  for (const auto* name : {"journal.db", "journal.db-wal", "journal.db-shm"}) {
    std::filesystem::remove(cluster.controller_directory() / name);
  }
  cluster.start_controller();
  cluster.register_cluster();
  EXPECT_THAT(cluster.verger({"cluster", "show", "orders"}).out,
              AllOf(HasSubstr("obeys a controller with epoch 2"), HasSubstr("--epoch-above")));
  const auto refused = cluster.verger({"plan", "scavenge", "orders"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("start this one once with --epoch-above"));
  end_controller(cluster);
  cluster.start_controller({{"VERGER_EPOCH_ABOVE", "2"}});
  const auto run = cluster.wait_for_run(cluster.start_scavenge_run(), seconds(120));
  SCOPED_TRACE(cluster.logs());
  ASSERT_TRUE(run.is_object());
  EXPECT_EQ(run.at("state"), "done") << run.dump(1);
}

}  // namespace
}  // namespace verger::test
