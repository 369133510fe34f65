#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e/growth/growing_cluster.h"

/// Nodes that join a cluster from a backup while it is written to.
namespace verger::test {
namespace {

using std::chrono::seconds;

class Growth : public GrowingCluster {
 protected:
  static std::vector<std::string> words(const NewMachine& machine,
                                        const std::vector<std::string>& more) {
    return grow_words({{"--repository", "main"}, machine.as_options(), more});
  }
  Finished grow_once_settled(const NewMachine& machine,
                             const std::vector<std::string>& more) const {
    return run_once_settled(words(machine, more), seconds(60));
  }
  void expect_written_on(const std::vector<std::string>& urls, const NewMachine& machine) {
    SCOPED_TRACE(machine.logs());
    GrowingCluster::expect_written_on(urls, seconds(20));
  }
};

TEST_F(Growth, AReadOnlyReplicaJoinsFromABackupUnderWrites) {
  start_and_back_up();
  const NewMachine machine(cluster_, "n4", /*read_only_replica=*/true);
  const auto grown = grow_once_settled(machine, {"--add-replica"});
  ASSERT_EQ(grown.status, 0) << grown.out << grown.err << machine.logs() << cluster_.logs();
  EXPECT_TRUE(grown.out.contains("n4 is a read-only-replica of the cluster")) << grown.out;
  EXPECT_EQ(registered(), (std::vector<std::string>{"n1", "n2", "n3", "n4"}));
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  writer_->stop();
  EXPECT_EQ(writer_->failed(), 0);
  expect_written_on(
      {cluster_.node_url(0), cluster_.node_url(1), cluster_.node_url(2), machine.url()}, machine);
  fmt::print("{}", grown.out);
}

TEST_F(Growth, ADeadVoterIsReplacedFromABackupUnderWrites) {
  start_and_back_up();
  cluster_.agent(2).kill();
  cluster_.kill_server(2);
  const NewMachine machine(cluster_, "n4", /*read_only_replica=*/false);
  const auto refused = cluster_.verger(words(machine, {"--replace", "n3"}));
  EXPECT_NE(refused.status, 0) << refused.out;
  EXPECT_TRUE((refused.out + refused.err).contains("n3: its agent is silent"))
      << refused.out << refused.err;
  const auto grown = grow_once_settled(machine, {"--replace", "n3", "--replaced-is-gone"});
  ASSERT_EQ(grown.status, 0) << grown.out << grown.err << machine.logs() << cluster_.logs();
  EXPECT_EQ(registered(), (std::vector<std::string>{"n1", "n2", "n4"}));
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  // Now n4 is one of the two that confirm.
  cluster_.agent(1).kill();
  cluster_.kill_server(1);
  ASSERT_TRUE(writer_->wait_for(10)) << machine.logs() << cluster_.logs();
  writer_->stop();
  EXPECT_EQ(writer_->failed(), 0);
  expect_written_on({cluster_.node_url(0), machine.url()}, machine);
}

TEST_F(Growth, AVoterThatWasToBeAReplicaIsStoppedAndTheClusterIsAsItWas) {
  start_and_back_up();
  const NewMachine machine(cluster_, "n4", /*read_only_replica=*/false);
  const auto grown = grow_once_settled(machine, {"--add-replica"});
  EXPECT_EQ(grown.status, 1) << grown.out << grown.err << machine.logs() << cluster_.logs();
  EXPECT_TRUE((grown.out + grown.err).contains("n4 runs as a voter")) << grown.out << grown.err;
  EXPECT_TRUE(grown.out.contains("undone: n4 is stopped")) << grown.out;
  EXPECT_FALSE(machine.server_runs());
  EXPECT_EQ(registered(), (std::vector<std::string>{"n1", "n2", "n3"}));
  for (const auto& entry : std::filesystem::directory_iterator(machine.database())) {
    EXPECT_EQ(entry.path().filename().string().find("chunk-"), std::string::npos) << entry.path();
  }
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  writer_->stop();
  EXPECT_EQ(writer_->failed(), 0);
  expect_written_on({cluster_.node_url(0), cluster_.node_url(1), cluster_.node_url(2)}, machine);
}

}  // namespace
}  // namespace verger::test
