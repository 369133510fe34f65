// Backups of disk snapshots by an agent: a real program, on the machine's disk.
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <thread>

#include "tests/support/temp_directory.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"

namespace verger::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

constexpr const char* kSnapshotProgram = R"(#!/bin/sh
set -eu
here=$(dirname "$0")
echo "$1" >> "$here/calls"
snapshot=$here/snapshots/$VERGER_SNAPSHOT_ID
case $1 in
  create) mkdir -p "$snapshot" && cp -r "$VERGER_SNAPSHOT_DATABASE" "$snapshot/db" &&
    echo "database=$snapshot/db" ;;
  delete) [ ! -e "$here/busy" ] || { echo "device is busy" >&2; exit 1; }
    rm -rf "$snapshot" ;;
esac
)";

class ASnapshotBackup : public AgentFixture {
 protected:
  ASnapshotBackup() {
    test::DatabaseBuilder builder(posix_file_system(), place("db"), {});
    for (int i = 0; i < 100; ++i) {
      builder.write(fmt::format("stream-{}", i % 7), 1 + i % 3, 200);
    }
    builder.close();
    std::ofstream(place("program")) << kSnapshotProgram;
    EXPECT_EQ(::chmod(place("program").c_str(), 0755), 0);
    fs::create_directories(place("repositories"));
    fs::create_directories(place("backup"));
    std::ofstream(place("repositories/nightly.json"))
        << json{{"location", place("backup").string()}}.dump();
    host_.serve_http(2113, [](http::Request /*request*/) -> net::awaitable<http::Response> {
      http::Response out;
      out.headers.set("Content-Type", "application/json");
      // What a node says at which a scavenge runs.
      out.body =
          R"({"esVersion":"24.10.0","state":"follower","scavengeId":"5b1e","scavengeLink":"x"})";
      co_return out;
    });
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 16},
                                                      std::chrono::milliseconds(100));
    configure(place("program"));
  }

  Path place(const std::string& name) const { return directory_.path() / name; }
  void configure(const Path& program) {
    backups_ = std::make_shared<BackupAccess>(
        BackupAccess{.repositories = place("repositories"),
                     .temporary = place("temporary"),
                     // Virtual time passes faster than the program works.
                     .snapshots = {.program = program,
                                   .state = place("state"),
                                   .limit = std::chrono::hours(100'000)},
                     .files = posix_file_system(),
                     .database = posix_file_system(),
                     .clock = host_.clock(),
                     .random = random_,
                     .log = null_log(),
                     .jobs = *runner_,
                     .host = "db1"});
    restart();
    ASSERT_EQ(permit(1, 86'400'000), "204");
  }
  void restart() {
    open_agent([this]() -> node::NodeInspection* { return &node_; });
  }
  std::string begin(const std::string& id) {
    return operate(id, "snapshot_backup",
                   {{"repository", "nightly"}, {"node", "n1"}, {"cluster", "orders"}}, 1);
  }
  /// Lets the agent work until then. The program takes real time.
  bool until(const std::function<bool()>& is_so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_so() && std::chrono::steady_clock::now() < end) {
      world_.run_for(std::chrono::milliseconds(100));
      std::this_thread::yield();
    }
    return is_so();
  }
  json settled(const std::string& id) {
    EXPECT_TRUE(until([&] { return !look(id).value("finishedAt", "").empty(); })) << answer_;
    return answer_;
  }
  std::vector<std::string> calls() const {
    std::vector<std::string> out;
    std::ifstream lines(place("calls"));
    for (std::string line; std::getline(lines, line);) {
      out.push_back(line);
    }
    return out;
  }
  bool snapshots_left() const {
    return fs::exists(place("snapshots")) && !fs::is_empty(place("snapshots"));
  }

  test::TempDirectory directory_;
  SeededRandom random_{7};
  CopiedNode node_{place("db")};
};

TEST_F(ASnapshotBackup, IsMadeWhileAScavengeRunsAndLeavesNoSnapshot) {
  ASSERT_EQ(begin("o1"), "202") << answer_;
  const auto status = settled("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"].value("state", ""), "frozen");
  EXPECT_EQ(status["result"].value("node", ""), "n1");
  EXPECT_THAT(calls(), ElementsAre("create", "delete"));
  EXPECT_FALSE(snapshots_left());
  ASSERT_EQ(ask("GET", "/agent/v1/backups?repository=nightly"), "200");
  EXPECT_EQ(answer_["generations"].size(), 1U);
  // The next one is of another snapshot, and reads only what is new.
  ASSERT_EQ(begin("o2"), "202") << answer_;
  EXPECT_EQ(settled("o2")["result"].value("parent", ""), status["result"].value("id", "-"));
}

TEST_F(ASnapshotBackup, ThatIsCancelledLeavesNoSnapshot) {
  ASSERT_EQ(begin("o1"), "202") << answer_;
  ASSERT_TRUE(until([&] { return snapshots_left(); }));
  ASSERT_EQ(ask("POST", "/agent/v1/operations/o1/cancel"), "202");
  EXPECT_EQ(settled("o1").value("errorCode", ""), "stopped");
  EXPECT_FALSE(snapshots_left());
}

TEST_F(ASnapshotBackup, OfAnAgentThatDiedIsMadeByTheNextOfANewSnapshot) {
  ASSERT_EQ(begin("o1"), "202") << answer_;
  ASSERT_TRUE(until([&] { return snapshots_left(); }));
  restart();
  const auto status = settled("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_TRUE(until([&] { return !snapshots_left(); }));
}

TEST_F(ASnapshotBackup, WhatOneLeftIsDeletedWhenTheAgentStarts) {
  fs::create_directories(place("state"));
  fs::create_directories(place("snapshots/verger-0000000000000001-1/db"));
  std::ofstream(place("state/verger-0000000000000001-1.json")) << json{
      {"id", "verger-0000000000000001-1"},
      {"volume", "both"},
      {"database", place("db").string()},
      {"index", place("db/index").string()}}.dump();
  restart();
  EXPECT_TRUE(until([&] { return !snapshots_left(); }));
  EXPECT_TRUE(until([&] { return !fs::exists(place("state/verger-0000000000000001-1.json")); }));
  EXPECT_THAT(calls(), ElementsAre("delete"));
}

TEST_F(ASnapshotBackup, IsDoneWithAWarningWhereItsSnapshotCannotBeDeleted) {
  std::ofstream(place("busy")) << "";
  ASSERT_EQ(begin("o1"), "202") << answer_;
  const auto status = settled("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  ASSERT_EQ(status["result"].value("warnings", json::array()).size(), 1U) << status;
  EXPECT_THAT(status["result"]["warnings"][0].get<std::string>(), HasSubstr("device is busy"));
  EXPECT_TRUE(snapshots_left());
  // No further one fills the disk.
  ASSERT_EQ(begin("o2"), "202") << answer_;
  EXPECT_EQ(settled("o2").value("errorCode", ""), "unavailable");
  fs::remove(place("busy"));
  ASSERT_EQ(begin("o3"), "202") << answer_;
  EXPECT_EQ(settled("o3").value("state", ""), "done") << answer_;
  EXPECT_FALSE(snapshots_left());
}

TEST_F(ASnapshotBackup, NeedsAProgramForIt) {
  configure("");
  ASSERT_EQ(begin("o1"), "202") << answer_;
  const auto status = settled("o1");
  EXPECT_EQ(status.value("errorCode", ""), "unsupported");
  EXPECT_THAT(status.value("error", ""), HasSubstr("--snapshot-command"));
  ASSERT_EQ(ask("GET", "/agent/v1/backups/repositories"), "200");
  EXPECT_FALSE(answer_["repositories"][0].value("snapshots", false));
  EXPECT_THAT(answer_["repositories"][0].value("snapshotProblem", ""),
              HasSubstr("--snapshot-command"));
  configure(place("program"));
  ASSERT_EQ(ask("GET", "/agent/v1/backups/repositories"), "200");
  EXPECT_EQ(answer_["repositories"][0].value("snapshots", false), true);
}

}  // namespace
}  // namespace verger::agent
