#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>

#include "tests/e2e/backup/backup_case.h"
#include "tests/support/fixtures.h"

/// A read-only replica beside the three voters, with an agent of its own.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class RestoreReplica : public BackupCase {
 protected:
  ~RestoreReplica() override {
    agent_.reset();
    kill_replica();
  }

  void start_with_replica() {
    start();
    std::filesystem::create_directories(directory_.path() / "scratch");
    unpack_fixture(RealCluster::Options{}.database, database());  // as the voters have it
    write_scripts();
    ASSERT_EQ(run({"/bin/sh", script("start")}).status, 0);
    agent_.emplace(Process::Options{.command = {program("verger-agent"),
                                                "--role",
                                                "agent",
                                                "--node",
                                                url(),
                                                "--db",
                                                database().string(),
                                                "--state",
                                                (directory_.path() / "agent").string(),
                                                "--agent-port",
                                                std::to_string(ports_[2]),
                                                "--end-after-seconds",
                                                "300",
                                                "--controller-token-file",
                                                cluster_.agents_token().string(),
                                                "--backup-repositories",
                                                cluster_.repository_files().string(),
                                                "--backup-scratch",
                                                (directory_.path() / "scratch").string(),
                                                "--agent-poll-interval-ms",
                                                "50",
                                                "--start-command",
                                                "/bin/sh " + script("start"),
                                                "--stop-command",
                                                "/bin/sh " + script("stop")},
                                    .environment = {},
                                    .output = directory_.path() / "agent.log"});
    std::vector<std::string> update{"cluster", "update", "orders"};
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      update.insert(update.end(), {"--node", fmt::format("n{}={}", i + 1, cluster_.node_url(i)),
                                   "--agent", cluster_.agent_url(i)});
    }
    update.insert(update.end(), {"--node", "n4=" + url(), "--agent",
                                 fmt::format("http://127.0.0.1:{}", ports_[2])});
    Finished updated;
    ASSERT_TRUE(eventually(seconds(30),
                           [&] {
                             updated = cluster_.verger(update);
                             return updated.status == 0;
                           }))
        << updated.err << own_logs();
    ASSERT_TRUE(eventually(seconds(30), [&] { return follows(); })) << own_logs();
  }
  bool follows() const {
    const auto shown = cluster_.verger_json({"cluster", "show", "orders"});
    if (shown.is_object()) {
      for (const auto& node : shown.at("snapshot").at("nodes")) {
        if (node.at("name") == "n4") {
          return node.value("state", "") == "ReadOnlyReplica" && node.at("lag_bytes") == 0;
        }
      }
    }
    return false;
  }
  void kill_replica() const {
    run({"/bin/sh", "-c", fmt::format("kill -9 $(cat {}.pid)", script("start"))});
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", ports_[0]); }
  std::filesystem::path database() const { return directory_.path() / "db"; }
  std::string own_logs() const {
    return file_text(directory_.path() / "node.log") + file_text(directory_.path() / "agent.log") +
           cluster_.logs();
  }
  /// That the replica has as many events as a voter, and the same log.
  void expect_level_replica(int acknowledged) {
    const auto there = expect_events_everywhere(acknowledged);
    EXPECT_TRUE(eventually(seconds(20), [&] { return events_at(url()) == there; }))
        << events_at(url()) << " of " << there << own_logs();
    EXPECT_TRUE(eventually(seconds(20), [&] {
      return digest_of(database()) == digest_of(cluster_.node_directory(0));
    })) << own_logs();
  }

 private:
  std::string script(const std::string& verb) const {
    return (directory_.path() / (verb + ".sh")).string();
  }
  void write_scripts() const {
    std::string seeds;
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      seeds += fmt::format("{}127.0.0.1:{}", i == 0 ? "" : ",", cluster_.node_port(i));
    }
    std::ofstream(script("start"))
        << program("verger-agent") << " --role node --read-only-replica --db "
        << database().string() << " --state " << (directory_.path() / "agent").string()
        << " --node-port " << ports_[0] << " --replication-port " << ports_[1] << " --cluster-size "
        << RealCluster::kNodes << " --gossip-seed " << seeds
        << " --end-after-seconds 300 --max-mem-table-size 200 --stream-existence-filter-size 10000"
        << " --fast-timings --enable-atom-pub-over-http >> "
        << (directory_.path() / "node.log").string() << " 2>&1 &\necho $! > " << script("start")
        << ".pid\n";
    std::ofstream(script("stop")) << "kill $(cat " << script("start") << ".pid)\n";
  }

  TempDirectory directory_;
  PortLease ports_{3};
  std::optional<Process> agent_;
};

TEST_F(RestoreReplica, AloneCatchesUp) {
  start_with_replica();
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(20)) << own_logs();
  const auto id = a_backup();
  kill_replica();
  std::filesystem::remove_all(database());
  std::filesystem::create_directories(database());
  const auto run = restore({"--scope", "node", "--nodes", "n4", "--generation", id});
  EXPECT_EQ(run.at("report").value("outcome", ""), "restored") << run.dump(1) << own_logs();
  ASSERT_TRUE(writer.wait_for(10)) << own_logs();
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);
  expect_level_replica(writer.written());
}

TEST_F(RestoreReplica, IsRestoredWithItsCluster) {
  start_with_replica();
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(20)) << own_logs();
  const auto acknowledged = writer.written();
  a_backup();
  ASSERT_TRUE(writer.wait_for(10)) << own_logs();
  writer.stop();
  const auto run = restore({"--scope", "cluster"});
  EXPECT_EQ(run.at("report").at("nodes").size(), 4U) << run.dump(1);
  ASSERT_TRUE(eventually(seconds(30), [&] { return follows(); })) << own_logs();
  expect_level_replica(acknowledged);
  expect_writes();
}

}  // namespace
}  // namespace verger::test
