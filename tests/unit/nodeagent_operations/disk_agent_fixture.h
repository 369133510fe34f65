#pragma once

#include <chrono>
#include <exception>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"
#include "tests/unit/nodeagent_operations/follower_answers.h"

namespace verger::agent {

/// An agent whose operations stop and start a server, over a database on the machine's disk. The
/// server is two shell commands; a test makes the database, then opens the agent.
class DiskAgentFixture : public ::testing::Test {
 protected:
  using json = nlohmann::json;

  /// `start`: what happens to the files when the server starts. With both commands by default each
  /// is noted (deeds()).
  void open_agent(std::string start = {}, std::string stop = {}) {
    agent_ = nullptr;
    node_.emplace(database());
    const auto note = [this](const char* what) {
      return std::string("echo ") + what + " >> " + (directory_.path() / "deeds").string();
    };
    offline_ = std::make_unique<external::OfflineServer>(
        external::DatabasePlace{.database = database(), .index = {}},
        external::ServiceOptions{.start_command = start.empty() ? note("start") : std::move(start),
                                 .stop_command = stop.empty() ? note("stop") : std::move(stop)},
        posix_file_system(), system_clock(), system_random(), timers_, jobs_, jobs_, null_log());
    agent_ = value(Agent::open({.journal = directory_.path() / "agent" / "journal.db",
                                .node = {.tls = false, .host = "10.0.0.1", .port = 2113},
                                .poll_interval = std::chrono::milliseconds(2)},
                               {.executor = context_.get_executor(),
                                .files = posix_file_system(),
                                .clock = system_clock(),
                                .timers = timers_,
                                .client = client(),
                                .jobs = jobs_,
                                .log = null_log(),
                                .inspection = [this] { return &*node_; },
                                .offline = offline_.get(),
                                .backups = backups_}));
    agent_->start();
  }
  /// What the server answers; by default a follower's answers.
  virtual http::Client& client() { return follower_; }

  [[nodiscard]] Path database() const { return directory_.path() / "db"; }
  /// "stop\nstart\n": what was done to the server.
  [[nodiscard]] std::string deeds() const {
    std::stringstream out;
    out << std::ifstream(directory_.path() / "deeds").rdbuf();
    return out.str();
  }

  /// The status of an operation once it has ended, and the agent with it.
  json run(std::string_view kind, const json& parameters = json::object()) {
    json status = json::object();
    const auto whole = [&]() -> net::awaitable<void> {
      EXPECT_EQ((co_await agent_->handler()(permit_request())).status, 204);
      const auto accepted = co_await agent_->handler()(operation_request(kind, parameters));
      EXPECT_EQ(accepted.status, 202) << accepted.body;
      while (status.value("finishedAt", "").empty()) {
        co_await timers_.sleep_for(std::chrono::milliseconds(2));
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
  std::shared_ptr<const BackupAccess> backups_;  ///< of an agent that is opened from now on
  FollowerAnswers follower_;
  std::optional<CopiedNode> node_;
  std::unique_ptr<external::OfflineServer> offline_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace verger::agent
