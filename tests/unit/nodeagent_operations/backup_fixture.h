#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/backup/directory_store.h"
#include "engine/backup/repository.h"
#include "nodeagent/operations/backup/backup_access.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"
#include "tests/unit/nodeagent_operations/agent_fixture.h"
#include "tests/unit/nodeagent_operations/still_node.h"

namespace verger::agent {

/// A node with a database, as far as a backup looks at it.
class CopiedNode final : public StillNode {
 public:
  explicit CopiedNode(const Path& database) : database_(database), index_(database / "index") {}
  const Path& database_directory() const override { return database_; }
  const Path& index_directory() const override { return index_; }
  std::optional<api::ScavengePoint> last_finished_point() const override { return finished; }
  std::string instance_id() const override { return instance; }
  /// From now on it has another database.
  void at(const Path& database) {
    database_ = database;
    index_ = database / "index";
  }
  std::optional<api::ScavengePoint> finished{};
  std::string instance{};

 private:
  Path database_;
  Path index_;
};

/// Agents of small nodes on one machine, whose repositories are "nightly" and "gone": the directory
/// of the latter is not there. A step of a job takes 100 ms.
class BackupFixture : public AgentFixture {
 protected:
  explicit BackupFixture(test::BuilderOptions options = {}) {
    fill("/db", options);
    auto& disk = host_.disk();
    value(disk.make_directories("/repositories"));
    value(disk.make_directories("/backup"));
    describe("nightly", R"({"location":"/backup"})");
    describe("gone", R"({"location":"/mnt/gone"})");
    host_.serve_http(2113, [this](http::Request request) -> net::awaitable<http::Response> {
      http::Response out;
      out.headers.set("Content-Type", "application/json");
      out.body = request.target.starts_with("/info")
                     ? R"({"esVersion":"24.10.0","state":"follower"})"
                     : json{{"scavengeId", scavenge_}, {"scavengeLink", ""}}.dump();
      co_return out;
    });
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 16},
                                                      std::chrono::milliseconds(100));
    backups_ = access();
    open_agent();
    permit();
  }

  /// Several chunks, and tables on two levels.
  void fill(const Path& directory, test::BuilderOptions options = {}, int writes = 150) {
    test::DatabaseBuilder builder(host_.disk(), directory, options);
    for (int i = 0; i < writes; ++i) {
      builder.write(fmt::format("stream-{}", i % 7), 1 + i % 3,
                    static_cast<std::size_t>(100 + 37 * (i % 11)));
    }
  }
  void describe(std::string_view name, std::string_view content) {
    value(write_file_durably(host_.disk(), fmt::format("/repositories/{}.json", name),
                             as_bytes(content)));
  }
  std::shared_ptr<BackupAccess> access() {
    return std::make_shared<BackupAccess>(BackupAccess{.repositories = "/repositories",
                                                       .temporary = "/agent/backup",
                                                       .files = host_.disk(),
                                                       .database = host_.disk(),
                                                       .clock = host_.clock(),
                                                       .random = random_,
                                                       .log = null_log(),
                                                       .jobs = *runner_,
                                                       .host = "db1"});
  }
  void open_agent() {
    AgentFixture::open_agent(
        [this]() -> node::NodeInspection* { return node_runs_ ? &node_ : nullptr; });
  }
  void permit() { ASSERT_EQ(AgentFixture::permit(1, 86'400'000), "204"); }

  static json parameters(json more = json::object()) {
    json out{{"repository", "nightly"}, {"node", "n1"}, {"cluster", "orders"}};
    out.update(more);
    return out;
  }
  std::string begin(const std::string& id, const json& more = json::object(),
                    const std::string& kind = "backup") {
    return operate(id, kind, kind == "backup" ? parameters(more) : more, 1);
  }
  /// The status of a backup that ran to its end.
  json back_up(const std::string& id, const json& more = json::object()) {
    EXPECT_EQ(begin(id, more), "202") << answer_;
    return ended(id);
  }
  /// Of work on the repository alone.
  json run(const std::string& id, const std::string& kind, const json& parameters) {
    EXPECT_EQ(begin(id, parameters, kind), "202") << answer_;
    return ended(id);
  }
  /// With a controller that queries it each second, until some of it is copied.
  void copy_some(const std::string& id) {
    for (int looks = 0; looks < 100; ++looks) {
      if (look(id).value("progress", json::object()).value("bytes", 0) > 0) {
        return;
      }
      world_.run_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << "copies nothing: " << answer_;
  }
  /// As the agent lists them.
  json generations(const std::string& repository = "nightly") {
    EXPECT_EQ(ask("GET", "/agent/v1/backups?repository=" + repository), "200") << answer_;
    return answer_.value("generations", json::array());
  }
  backup::Repository repository() {
    return value(backup::Repository::open(store_, backup::Repository::Create::kNo));
  }

  std::string scavenge_;  ///< that the node says runs
  SeededRandom random_{7};
  backup::DirectoryStore store_{host_.disk(), "/backup", random_};
  CopiedNode node_{"/db"};
  bool node_runs_ = true;
};

}  // namespace verger::agent
