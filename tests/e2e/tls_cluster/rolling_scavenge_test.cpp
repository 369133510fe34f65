#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/rolling_scavenge/checks.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TlsCluster, IsScavengedOverHttpsWithItsAgents) {
  RealCluster cluster({.tls = true});
  const auto run = scavenge_from_the_start(cluster);
  SCOPED_TRACE(cluster.logs());
  expect_a_good_end(run);
}

TEST(TlsCluster, IsScavengedOverHttpsWithoutAgentsAndWithoutAtomPub) {
  RealCluster cluster({.atom = false, .with_agents = false, .role = "node", .tls = true});
  const auto run = scavenge_from_the_start(cluster);
  SCOPED_TRACE(cluster.logs());
  ASSERT_TRUE(run.is_object());
  EXPECT_EQ(run.at("state"), "done") << run.dump(1);
  EXPECT_TRUE(run.at("report").at("digests_equal").is_null()) << "it cannot be seen";
  EXPECT_LE(run.at("report").at("planned_leader_moves"), 1);
}

TEST(TlsCluster, IsScavengedWithAgentsBesideServersOfTheirOwn) {
  RealCluster cluster({.separate_agents = true, .atom = false, .role = "node", .tls = true});
  const auto run = scavenge_from_the_start(cluster);
  SCOPED_TRACE(cluster.logs());
  expect_a_good_end(run);
  if (run.is_object()) {
    EXPECT_EQ(run.at("report").at("readable_unchanged"), true);
  }
}

TEST(TlsCluster, PasswordsAreReadAgainAndWatchedOver) {
  namespace fs = std::filesystem;
  RealCluster cluster({.separate_agents = true, .atom = false, .role = "node", .tls = true});
  const auto file = cluster.controller_directory() / "credentials" / "orders";
  fs::permissions(file, fs::perms(0600));
  cluster.start_all();
  cluster.register_cluster();
  const auto shows = [&](const std::string& text) {
    return eventually(std::chrono::seconds(30), [&] {
      return cluster.verger({"cluster", "show", "orders"}).out.contains(text);
    });
  };
  EXPECT_FALSE(cluster.verger({"cluster", "show", "orders"}).out.contains("warning"));
  // The agents have the same file; vergerd reads it at each look.
  std::ofstream(file) << "admin\nwrong\n127.0.0.1:*\n";
  fs::permissions(file, fs::perms(0644));
  EXPECT_TRUE(shows("warning: the agent of n3")) << cluster.logs();
  EXPECT_TRUE(shows("warning: " + file.string())) << cluster.logs();
  EXPECT_TRUE(eventually(std::chrono::seconds(30),
                         [&] { return cluster.logs().contains("the credentials have changed"); }));
  EXPECT_EQ(cluster.verger({"plan", "scavenge", "orders"}).status, 2);
  std::ofstream(file) << "admin\nchangeit\n127.0.0.1:*\n";
  fs::permissions(file, fs::perms(0600));
  EXPECT_FALSE(cluster.plan_scavenge().empty()) << cluster.logs();
}

TEST(TlsCluster, IsKnownByAnotherNameThanItAdvertises) {
  RealCluster cluster({.atom = false, .with_agents = false, .role = "node", .tls = true});
  cluster.start_all();
  cluster.register_cluster();
  ASSERT_EQ(cluster.verger({"cluster", "remove", "orders"}).status, 0);
  std::vector<std::string> add{"cluster", "add", "orders", "--credentials", "orders"};
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    add.insert(add.end(), {"--node", "n" + std::to_string(i + 1) + "=https://localhost:" +
                                         std::to_string(cluster.node_port(i))});
  }
  const auto added = cluster.verger(add);
  ASSERT_EQ(added.status, 0) << added.err;
  EXPECT_EQ(cluster.wait_until_settled(), "");
  EXPECT_FALSE(cluster.plan_scavenge().empty());
}

TEST(TlsCluster, TellsWhichCertificateIsNotAcceptedAndWhatToDo) {
  RealCluster cluster({.with_agents = false, .role = "node", .tls = true});
  cluster.start_all();
  cluster.register_cluster();
  const TempDirectory directory;
  const OpensslAuthority stranger(directory.path() / "stranger", "Another root");
  const auto add = [&](const std::string& node, const std::string& roots) {
    return cluster.verger({"cluster", "add", "other", "--node", node, "--ca", roots});
  };
  const auto url = cluster.node_url(0);
  ASSERT_EQ(cluster.verger({"cluster", "remove", "orders"}).status, 0);

  const auto unknown = add(url, stranger.root().string());
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr(url), HasSubstr("CN=verger-node"),
                                 HasSubstr("issuer CN=Verger test root"),
                                 HasSubstr("add the root that issued it to")));
  const auto name = add("https://127.0.0.2:" + std::to_string(cluster.node_port(0)),
                        cluster.authority().root().string());
  EXPECT_EQ(name.status, 1);  // no process listens there, or the name does not fit
  const auto missing = add(url, "nowhere.crt");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("trusted-roots/nowhere.crt: cannot open"));
  const auto plain = add("http://10.9.8.7:2113", "");
  EXPECT_EQ(plain.status, 1);
  EXPECT_THAT(plain.err, HasSubstr("use https"));
  // Correcting the file that was named is all that is needed.
  const auto corrected = directory.path() / "roots.crt";
  std::filesystem::copy_file(stranger.root(), corrected);
  EXPECT_EQ(add(url, corrected.string()).status, 1);
  std::filesystem::copy_file(cluster.authority().root(), corrected,
                             std::filesystem::copy_options::overwrite_existing);
  // The file is looked at once a second; until then it is refused for the roots that were there.
  Finished right;
  EXPECT_TRUE(eventually(std::chrono::seconds(20), [&] {
    right = add(url, corrected.string());
    return right.status == 0 || !right.err.contains("no chain leads from it to a trusted root");
  })) << right.err;
  EXPECT_EQ(right.status, 0) << right.err;
}

TEST(TlsCluster, RoutesBetweenNodesAreClosedToOthers) {
  RealCluster cluster({.with_agents = false, .role = "node", .tls = true});
  cluster.start_all();
  cluster.register_cluster();
  HttpsCaller operator_with_password(cluster.authority().root());
  for (const auto* route : {"/verger/v1/gossip", "/verger/v1/election", "/verger/v1/write",
                            "/%76erger/v1/write", "/verger/v%31/write"}) {
    const auto answer = operator_with_password.post(cluster.node_url(0), route);
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->status, 401) << route;
  }
}

}  // namespace
}  // namespace verger::test
