#include <cctype>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/e2e/daemons/external_agent.h"

/// An agent is killed (SIGKILL) at a named place while it stops its server, restores a backup onto
/// its files, reverts that, or makes a drill, and is started again.
namespace verger::test {
namespace {

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (auto& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) == 0 ? '_' : c;
  }
  return name;
}

class RestoringAgent : public ExternalAgent, public ::testing::WithParamInterface<const char*> {
 protected:
  ~RestoringAgent() override {
    agent_->kill();
    run({"/bin/sh", path("stop.sh")});
  }

  void SetUp() override {
    facts_when(complete);
    end(*agent_);
    end(*server_);
    std::filesystem::create_directories(path("repositories"));
    std::filesystem::create_directories(path("scratch"));
    std::ofstream(path("repositories/main.json")) << json{{"location", path("backup")}};
    const auto made = run({program("verger-db"), "-o", "json", "backup", "create", path("db"),
                           "--to", path("backup"), "--node", "n1", "--digests", "readable"});
    ASSERT_EQ(made.status, 0) << made.err;
    generation_ = json::parse(made.out).at("id");
    // The server writes its next epoch, so that the database is no longer that of the backup.
    write_commands();
    ASSERT_EQ(run({"/bin/sh", path("start.sh")}).status, 0);
    start({{"VERGER_FAILPOINT", GetParam()}, {"VERGER_FAILPOINT_LOG", path("reached")}});
    facts_when(complete);
  }
  static void end(Process& process) {
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(seconds(20)), 0);
  }
  void start(const std::map<std::string, std::string>& environment = {}) {
    auto options = service_commands();
    options.insert(options.end(), {"--backup-repositories", path("repositories"),
                                   "--backup-scratch", path("scratch")});
    start_agent(options, environment);
  }

  /// The operation's end; a killed agent is followed by one that runs to the end.
  json carry_out(const std::string& kind, const json& parameters) {
    const auto id = fmt::format("op-{}", ++operations_);
    begin(id, kind, parameters);
    json status;
    const bool ended = eventually(seconds(60), [&] {
      if (!agent_->running()) {
        return true;
      }
      status = status_of(id);
      return has_ended(status);
    });
    EXPECT_TRUE(ended) << status.dump(1) << file_text(path("agent.log"));
    if (agent_->running()) {
      return status;
    }
    EXPECT_EQ(agent_->wait(seconds(1)), 128 + SIGKILL) << file_text(path("agent.log"));
    ++kills_;
    after_kill();
    start();
    return status_when(id, has_ended);
  }
  /// One that had not acted when its agent was killed is requested again.
  void done(const std::string& kind, const json& parameters) {
    const int kills = kills_;
    auto status = carry_out(kind, parameters);
    if (kills_ > kills && status.value("state", "") != "done") {
      status = carry_out(kind, parameters);
    }
    EXPECT_EQ(status.value("state", ""), "done")
        << kind << ": " << status.dump(1) << file_text(path("agent.log"));
  }
  virtual void after_kill() {}
  /// All files of the database, without our locks.
  std::map<std::string, std::string> database() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path("db"))) {
      if (entry.is_regular_file() && entry.path().filename() != "verger.lock") {
        files[std::filesystem::relative(entry.path(), path("db"))] = file_text(entry.path());
      }
    }
    return files;
  }

  std::string generation_;
  int operations_ = 0;
  int kills_ = 0;
};

class KilledRestore : public RestoringAgent {};

TEST_P(KilledRestore, IsEndedByTheNextAgentAndRevertedByteForByte) {
  done("stop_server", {{"serviceDeadlineMs", 5'000}});
  EXPECT_FALSE(facts().value("nodeRunning", true));
  const auto before = database();
  done("restore", {{"repository", "main"}, {"generation", generation_}, {"keepOld", true}});
  const auto verified = run({program("verger-db"), "verify", path("db")});
  EXPECT_EQ(verified.status, 0) << verified.out;
  EXPECT_NE(database(), before);
  EXPECT_FALSE(std::filesystem::exists(path("db/verger-restore")));
  EXPECT_FALSE(facts().value("nodeRunning", true)) << "nothing has started it";
  done("restore_revert", {{"generation", generation_}});
  EXPECT_EQ(database(), before);
  done("start_service", json::object());
  facts_when(complete);
  EXPECT_EQ(kills_, 1) << "never reached: " << GetParam();
}

constexpr const char* kRestorePlaces[] = {
    "agent.stop-server.before-stop", "agent.stop-server.stopped",  "agent.restore.before-copy",
    "restore.before-switch",         "restore.after-old",          "restore.after-checkpoint",
    "restore.after-chunk",           "restore.after-switch",       "restore.before-finish",
    "agent.restore.in-place",        "restore.after-kept",         "agent.restore.finished",
    "agent.restore-revert.begin",    "revert.after-chunk-removed", "revert.after-file",
    "revert.before-first-chunk",     "revert.before-finish",
};
INSTANTIATE_TEST_SUITE_P(AtEachPhase, KilledRestore, testing::ValuesIn(kRestorePlaces), name_of);

class KilledDrill : public RestoringAgent {
 protected:
  void after_kill() override {
    for (const auto& entry : std::filesystem::directory_iterator(path("scratch"))) {
      const auto note = entry.path() / "verger-drill.json";
      const auto noted = json::parse(file_text(note), nullptr, /*allow_exceptions=*/false);
      if (noted.is_object() && noted.contains("process")) {
        const auto process = "/proc/" + std::to_string(noted.at("process").get<int>());
        EXPECT_TRUE(eventually(seconds(20), [&] {
          return file_text(process + "/cmdline").empty();
        })) << "the server of the drill outlives its agent";
      }
    }
  }
};

TEST_P(KilledDrill, IsRestartedAndLeavesNothing) {
  const auto status = carry_out(
      "backup_drill", {{"repository", "main"}, {"generation", generation_}, {"by", "a test"}});
  ASSERT_EQ(status.value("state", ""), "done") << status.dump(1) << file_text(path("agent.log"));
  const auto& result = status.at("result");
  EXPECT_TRUE(result.value("passed", false)) << result.dump(1);
  EXPECT_TRUE(result.value("logicalEqual", false));
  EXPECT_TRUE(result.value("readableEqual", false));
  EXPECT_GT(result.value("streams", 0), 0);
  EXPECT_GT(result.value("events", 0), 0);
  for (const auto& entry : std::filesystem::directory_iterator(path("scratch"))) {
    EXPECT_EQ(entry.path().filename(), "verger-drill.lock");
  }
  facts_when(complete);  // its own server has seen nothing of it
  EXPECT_EQ(kills_, 1) << "never reached: " << GetParam();
}

constexpr const char* kDrillPlaces[] = {
    "agent.drill.begun",   "agent.drill.restored", "agent.drill.started",
    "agent.drill.stopped", "agent.drill.read",
};
INSTANTIATE_TEST_SUITE_P(AtEachPhase, KilledDrill, testing::ValuesIn(kDrillPlaces), name_of);

}  // namespace
}  // namespace verger::test
