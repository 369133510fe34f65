#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/repository.h"
#include "engine/base/directories.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/agent.h"
#include "nodeagent/operations/backup/backup_access.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"
#include "tests/unit/nodeagent_operations/still_node.h"

namespace verger::agent {

/// An agent in virtual time beside a server that is a flag, whose database lies at /db on a disk in
/// memory; the repository "main" has one generation of another database.
class RestoreCase {
 public:
  using json = nlohmann::json;
  using Tree = std::map<std::string, Bytes>;

  explicit RestoreCase(int writes = 40)
      : host_(world_.add_host("n1")), asker_(world_.add_host("controller")) {
    asker_.boot();
    generation = make_generation(writes);
    build("/db", 5, 30);
    // All of it durable: what a power cut loses is not what was there before.
    host_.set_disk(host_.disk().clone());
    before = tree("/db");
    open();
  }

  /// A new process of the agent, on the disk as it is; one that runs is killed.
  void open() {
    if (host_.up()) {
      host_.crash(/*power=*/false);
    }
    host_.boot();
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 64});
    access_ = std::make_shared<const BackupAccess>(BackupAccess{.repositories = "/etc/repositories",
                                                                .scratch = {},
                                                                .temporary = "/agent/backup",
                                                                .files = host_.disk(),
                                                                .database = host_.disk(),
                                                                .clock = host_.clock(),
                                                                .random = random_,
                                                                .log = null_log(),
                                                                .jobs = *runner_,
                                                                .host = "machine"});
    offline_ = std::make_unique<external::OfflineServer>(
        external::DatabasePlace{.database = "/db", .index = {}},
        external::ServiceOptions{.own = external::ServiceOptions::OwnServer{
                                     .start = [this] { return set_running(true); },
                                     .stop = [this] { return set_running(false); },
                                     .runs = [this] { return running; }}},
        host_.disk(), host_.clock(), random_, host_.timers(), *runner_, *runner_, null_log(),
        "/agent/server-kept-stopped");
    auto opened = Agent::open(
        {.journal = "/agent/journal.db",
         .node = {.tls = false, .host = "n1", .port = 2113},
         .poll_interval = std::chrono::milliseconds(100)},
        {.executor = host_.executor(),
         .files = host_.disk(),
         .clock = host_.clock(),
         .timers = host_.timers(),
         .client = host_.client(),
         .jobs = *runner_,
         .log = null_log(),
         .inspection = [this]() -> node::NodeInspection* { return running ? &node_ : nullptr; },
         .offline = offline_.get(),
         .backups = access_});
    ASSERT_TRUE(opened) << opened.error().message;
    const std::shared_ptr<Agent> agent = *std::move(opened);
    host_.keep(agent);
    host_.serve_http(kAgentPort, agent->handler());
    agent->start();
  }
  /// The process ends at this instant, as by SIGKILL; open() is the next one.
  void die(bool power = false, std::optional<std::uint64_t> torn_seed = std::nullopt) {
    host_.die(power, torn_seed);
  }

  /// 0: no answer.
  int status(std::string method, std::string target, const json& body = json::object()) {
    std::optional<Result<http::Response>> got;
    asker_.spawn([](testing::SimHost& from, http::Request request,
                    std::optional<Result<http::Response>>& into) -> net::awaitable<void> {
      into = co_await from.client().send({.tls = false, .host = "n1", .port = kAgentPort},
                                         std::move(request), std::chrono::milliseconds(2'000));
    }(asker_, {.method = std::move(method), .target = std::move(target), .body = body.dump()},
                                                                 got));
    world_.run_until([&] { return got.has_value(); }, std::chrono::milliseconds(5'000));
    const bool answered = got && *got;
    answer = answered ? json::parse((*got)->body, nullptr, false) : json();
    return answered ? (*got)->status : 0;
  }
  /// Requests it, with a permit.
  std::string begin(const std::string& kind, const json& parameters) {
    const auto id = "o" + std::to_string(++operations_);
    status("POST", "/agent/v1/permits",
           {{"controllerEpoch", 1}, {"run", "r"}, {"step", "s"}, {"validForMs", 60'000}});
    status("POST", "/agent/v1/operations",
           {{"id", id},
            {"run", "r"},
            {"step", "s"},
            {"controllerEpoch", 1},
            {"kind", kind},
            {"parameters", parameters}});
    return id;
  }
  /// Its status once it has ended.
  json ended(const std::string& id) {
    for (int looks = 0; looks < 3'000; ++looks) {
      if (const auto code = status("GET", "/agent/v1/operations/" + id);
          code != 200 || !answer.value("finishedAt", "").empty()) {
        return answer;
      }
      world_.run_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << "has not ended: " << answer;
    return answer;
  }
  json run(const std::string& kind, const json& parameters = json::object()) {
    return ended(begin(kind, parameters));
  }
  [[nodiscard]] json restore_parameters(bool keep_old = true) const {
    return {{"repository", "main"}, {"generation", generation}, {"keepOld", keep_old}};
  }

  /// All files of a database, without locks.
  Tree tree(const Path& directory) {
    Tree found;
    const auto entries = host_.disk().list(directory);
    if (!entries) {
      return found;
    }
    for (const auto& entry : *entries) {
      if (entry.is_directory) {
        for (auto& [path, content] : tree(directory / entry.name)) {
          found[entry.name + "/" + path] = content;
        }
      } else if (entry.name != "verger.lock") {
        found[entry.name] = value(read_file(host_.disk(), directory / entry.name));
      }
    }
    return found;
  }
  /// Whether a server that is started now would show the generation.
  bool shows_generation() {
    const auto opened = streams::Database::open(host_.disk(), "/db",
                                                test::database_options({}, log::Access::kReadOnly),
                                                /*commit_all=*/true, clock_, random_, null_log());
    return opened && (*opened)->last_event_number("of-the-backup").value_or(EventNumber(-1)) >=
                         EventNumber(0);
  }
  void build(const Path& directory, std::uint64_t seed, int writes) {
    test::DatabaseBuilder builder(host_.disk(), directory, {.seed = seed});
    for (int i = 0; i < writes; ++i) {
      builder.write(directory == "/db" ? "of-before" : "of-the-backup", 1, 400);
    }
    builder.close();
  }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  testing::SimHost& asker_;
  bool running = true;
  /// The server does not do what is wanted of it.
  bool stubborn = false;
  int starts = 0;
  std::string generation;
  Tree before;
  json answer;
  std::unique_ptr<node::JobRunner> runner_;
  std::shared_ptr<const BackupAccess> access_;
  std::unique_ptr<external::OfflineServer> offline_;

 private:
  static constexpr std::uint16_t kAgentPort = 2114;

  net::awaitable<Result<void>> set_running(bool wanted) {
    starts += wanted ? 1 : 0;
    if (!stubborn) {
      running = wanted;
    }
    co_return stubborn && !wanted ? Result<void>(Error{Errc::kTimeout, "it takes its time"})
                                  : Result<void>();
  }

  std::string make_generation(int writes) {
    build("/source", 1, writes);
    auto& disk = host_.disk();
    ok(make_directories_durably(disk, "/repository"));
    ok(make_directories_durably(disk, "/etc/repositories"));
    ok(write_file_durably(disk, "/etc/repositories/main.json",
                          as_bytes(R"({"location":"/repository"})")));
    backup::DirectoryStore store(disk, "/repository", random_);
    auto repository =
        value(backup::Repository::open(store, backup::Repository::Create::kIfMissing));
    backup::BackupOptions options;
    options.source.directory = "/source";
    options.node.node = "n1";
    options.node.host = "machine";
    options.node.directory = "/db";
    backup::BackupJob job(disk, repository, options, clock_, random_, null_log());
    while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
    }
    return job.manifest().id;
  }

  SeededRandom random_{7};
  test::ManualClock clock_;
  StillNode node_;
  int operations_ = 0;
};

}  // namespace verger::agent
