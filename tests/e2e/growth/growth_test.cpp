#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/growth/new_machine.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/steady_writer.h"

/// Nodes that join a cluster from a backup while it is written to.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class Growth : public ::testing::Test {
 protected:
  void start_and_back_up() {
    cluster_.start_all();
    cluster_.register_cluster();
    writer_.emplace(cluster_, std::filesystem::path());
    ASSERT_TRUE(writer_->wait_for(20)) << cluster_.logs();
    const auto made = cluster_.verger_once_settled(
        {"backup", "create", "orders", "--repository", "main", "--yes", "--wait"});
    ASSERT_EQ(made.status, 0) << made.out << made.err << cluster_.logs();
    // What it does not have comes by replication.
    ASSERT_TRUE(writer_->wait_for(20)) << cluster_.logs();
  }
  Finished grow(const NewMachine& machine, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"cluster", "grow",  "orders", "--repository",
                                   "main",    "--yes", "--wait"};
    for (const auto& list : {machine.as_options(), more}) {
      words.insert(words.end(), list.begin(), list.end());
    }
    return cluster_.verger(words);
  }
  /// On a busy machine nodes elect another leader before the plan, or between it and its start.
  Finished grow_once_settled(const NewMachine& machine,
                             const std::vector<std::string>& more) const {
    Finished grown;
    eventually(seconds(60), [&] {
      grown = grow(machine, more);
      return grown.status == 0 || grown.status == 1;  // its run has ended
    });
    return grown;
  }
  std::vector<std::string> registered() const {
    std::vector<std::string> out;
    const auto shown = cluster_.verger_json({"cluster", "show", "orders"});
    for (const auto& node : shown.value("nodes", json::array())) {
      out.push_back(node.value("name", ""));
    }
    return out;
  }
  /// Each of them has what was acknowledged, and all have as many.
  void expect_written_on(const std::vector<std::string>& urls, const NewMachine& machine) {
    std::vector<int> seen;
    EXPECT_TRUE(eventually(seconds(20),
                           [&] {
                             seen.clear();
                             for (const auto& url : urls) {
                               seen.push_back(written_steadily_at(caller_, url));
                             }
                             return seen.front() >= writer_->written() &&
                                    std::ranges::all_of(
                                        seen, [&seen](int each) { return each == seen.front(); });
                           }))
        << writer_->written() << " acknowledged; there: " << ::testing::PrintToString(seen)
        << machine.logs() << cluster_.logs();
  }

  RealCluster cluster_{
      {.separate_agents = true, .role = "node", .services = true, .backups = true}};
  std::optional<SteadyWriter> writer_;
  HttpsCaller caller_;
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
  const auto refused = grow(machine, {"--replace", "n3"});
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
