#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/agent.h"
#include "nodeagent/operations/backup/backup_access.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"
#include "tests/unit/nodeagent_operations/follower_answers.h"

/// A database that is copied while its server is stopped, on the machine's disk.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class AnOfflineBackup : public ::testing::Test {
 protected:
  AnOfflineBackup() {
    const auto database = directory_.path() / "db";
    test::DatabaseBuilder builder(posix_file_system(), database);
    for (int i = 0; i < 30; ++i) {
      builder.write("stream", 2, 400);
    }
    builder.close();
    auto& files = posix_file_system();
    value(files.make_directories(directory_.path() / "repositories"));
    value(files.make_directories(directory_.path() / "backup"));
    describe("nightly", directory_.path() / "backup");
    describe("gone", directory_.path() / "gone");
    node_.emplace(database);
    offline_ = std::make_unique<external::OfflineServer>(
        external::DatabasePlace{.database = database, .index = {}},
        external::ServiceOptions{.start_command = "echo start >> " + deeds().string(),
                                 .stop_command = "echo stop >> " + deeds().string()},
        files, system_clock(), system_random(), timers_, jobs_, jobs_, null_log());
    const auto backups = std::make_shared<BackupAccess>(
        BackupAccess{.repositories = directory_.path() / "repositories",
                     .temporary = directory_.path() / "agent" / "backup",
                     .files = files,
                     .database = files,
                     .clock = system_clock(),
                     .random = system_random(),
                     .log = null_log(),
                     .jobs = jobs_,
                     .host = "db1"});
    agent_ = value(Agent::open({.journal = directory_.path() / "agent" / "journal.db",
                                .node = {.tls = false, .host = "10.0.0.1", .port = 2113},
                                .poll_interval = milliseconds(10)},
                               {.executor = context_.get_executor(),
                                .files = files,
                                .clock = system_clock(),
                                .timers = timers_,
                                .client = client_,
                                .jobs = jobs_,
                                .log = null_log(),
                                .inspection = [this] { return &*node_; },
                                .offline = offline_.get(),
                                .backups = backups}));
    agent_->start();
  }

  void describe(const std::string& name, const Path& location) {
    value(write_file_durably(posix_file_system(),
                             directory_.path() / "repositories" / (name + ".json"),
                             as_bytes(json{{"location", location.string()}}.dump())));
  }
  [[nodiscard]] Path deeds() const { return directory_.path() / "deeds"; }
  [[nodiscard]] std::string done() const {
    std::stringstream out;
    out << std::ifstream(deeds()).rdbuf();
    return out.str();
  }

  /// The status of an operation once it has ended.
  json run(const json& parameters) {
    json status = json::object();
    const auto whole = [&]() -> net::awaitable<void> {
      EXPECT_EQ((co_await agent_->handler()(permit_request())).status, 204);
      const auto accepted =
          co_await agent_->handler()(operation_request("offline_backup", parameters));
      EXPECT_EQ(accepted.status, 202) << accepted.body;
      while (status.value("finishedAt", "").empty()) {
        co_await timers_.sleep_for(milliseconds(2));
        status = json::parse(
            (co_await agent_->handler()({.method = "GET", .target = "/agent/v1/operations/o1"}))
                .body);
      }
      co_await agent_->stop();
    };
    std::exception_ptr failure;
    net::co_spawn(context_, whole(), [&failure](std::exception_ptr error) { failure = error; });
    context_.run_for(std::chrono::seconds(20));
    EXPECT_FALSE(failure);
    return status;
  }

  test::TempDirectory directory_;
  net::io_context context_{1};
  http::Timers& timers_ = http::system_timers();
  node::InlineJobRunner jobs_{timers_};
  FollowerAnswers client_;
  std::optional<CopiedNode> node_;
  std::unique_ptr<external::OfflineServer> offline_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AnOfflineBackup, StopsTheServerForTheCopyAndStartsItAgain) {
  const auto status = run({{"repository", "nightly"}, {"node", "n1"}, {"cluster", "orders"}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(done(), "stop\nstart\n");
  const auto& result = status["result"];
  EXPECT_EQ(result.value("state", ""), "stopped");
  EXPECT_EQ(result.value("node", ""), "n1");
  EXPECT_EQ(result.value("serverVersion", ""), "24.10.0");
  EXPECT_EQ(result.value("endPosition", 0), result.value("writerPosition", -1));
}

TEST_F(AnOfflineBackup, LeavesTheServerRunningWhereTheRepositoryIsNotThere) {
  const auto status = run({{"repository", "gone"}, {"node", "n1"}});
  EXPECT_EQ(status.value("errorCode", ""), "unavailable");
  EXPECT_THAT(status.value("error", ""), HasSubstr("mount its file system"));
  EXPECT_EQ(done(), "");
}

TEST_F(AnOfflineBackup, StartsTheServerAgainWhereTheCopyIsRefused) {
  value(write_file_durably(posix_file_system(), directory_.path() / "db" / "truncate.chk",
                           as_bytes(std::string_view("\x10\0\0\0\0\0\0\0", 8))));
  const auto status = run({{"repository", "nightly"}, {"node", "n1"}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("the log is to be cut"));
  EXPECT_EQ(done(), "stop\nstart\n");
}

}  // namespace
}  // namespace verger::agent
