#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <signal.h>

#include "tests/e2e/rolling_scavenge/checks.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/temp_directory.h"

/// All programs are replaced by those of a newer version in the middle of a run, as an upgrade of
/// the packages does: each daemon is ordered to end, and the newer one starts in its place.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// The programs of this build, but for the version that they tell: that of CMakeLists.txt is put
/// into the programs from there alone.
std::string newer_version() {
  std::string version = VERGER_VERSION;
  version.back() = version.back() == '9' ? '8' : '9';
  return version;
}

void make_newer(const std::string& name, const std::filesystem::path& directory) {
  std::ifstream in(program(name), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string old = std::string(VERGER_VERSION) + '\0';
  const auto next = newer_version() + '\0';
  int found = 0;
  for (auto at = bytes.find(old); at != std::string::npos; at = bytes.find(old, at + old.size())) {
    bytes.replace(at, old.size(), next);
    ++found;
  }
  ASSERT_GT(found, 0) << name << " has no version in it";
  const auto path = directory / name;
  std::ofstream(path, std::ios::binary) << bytes;
  std::filesystem::permissions(path, std::filesystem::perms(0755));
}

void end(Process& process) {
  process.signal(SIGTERM);
  ASSERT_TRUE(process.wait(seconds(20)).has_value());
}

TEST(Upgrade, OfAllProgramsInTheMiddleOfARunLetsItContinueToItsEnd) {
  const TempDirectory directory;
  for (const auto* name : {"vergerd", "verger-agent", "verger"}) {
    make_newer(name, directory.path());
  }
  RealCluster cluster;
  cluster.start_all();
  cluster.register_cluster();
  EXPECT_THAT(cluster.verger({"version"}).out, HasSubstr("vergerd " VERGER_VERSION));
  const auto run = cluster.start_scavenge_run();
  // Something has been done, and most has not.
  ASSERT_TRUE(eventually(seconds(60), [&] {
    const auto seen = cluster.verger_json({"run", "show", run});
    return seen.is_object() && seen.dump().contains("\"state\":\"done\"");
  })) << cluster.logs();
  end(cluster.controller());
  for (std::size_t index = 0; index < RealCluster::kNodes; ++index) {
    end(cluster.node(index));
  }
  cluster.replace_programs(directory.path());
  for (std::size_t index = 0; index < RealCluster::kNodes; ++index) {
    cluster.start_node(index);
  }
  cluster.start_controller();
  ASSERT_TRUE(eventually(seconds(30), [&] { return cluster.verger({"version"}).status == 0; }))
      << cluster.logs();
  const auto versions = cluster.verger({"version"}).out;
  EXPECT_EQ(versions, "verger " + newer_version() + "\nvergerd " + newer_version() + "\n");
  const auto begun = cluster.verger_json({"run", "show", run});
  ASSERT_TRUE(begun.is_object()) << cluster.logs();
  EXPECT_TRUE(begun.at("finished_at").is_null()) << "the upgrade came too late to be in the middle";

  const auto ended = cluster.wait_for_run(run, seconds(120));
  SCOPED_TRACE(cluster.logs());
  ASSERT_TRUE(ended.is_object());
  EXPECT_EQ(ended.at("state"), "done") << ended.dump(1);
  EXPECT_EQ(cluster.verger({"audit", "verify"}).status, 0);
}

}  // namespace
}  // namespace verger::test
