#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/repository.h"
#include "engine/base/directories.h"
#include "nodeagent/operations/backup/backup_access.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"
#include "tests/unit/nodeagent_operations/mortal_agent_case.h"
#include "tests/unit/nodeagent_operations/still_node.h"

namespace verger::agent {

/// A MortalAgentCase whose server is a flag; the repository "main" has one generation of another
/// database than that at /db.
class RestoreCase : public MortalAgentCase {
 public:
  using Tree = std::map<std::string, Bytes>;

  explicit RestoreCase(int writes = 40) {
    generation = make_generation(writes);
    build("/db", 5, 30);
    // All of it durable: what a power cut loses is not what was there before.
    host_.set_disk(host_.disk().clone());
    before = tree("/db");
    open();
  }

  /// A new process of the agent, on the disk as it is; one that runs is killed.
  void open() {
    open_agent(
        {.start = [this] { return set_running(true); },
         .stop = [this] { return set_running(false); },
         .runs = [this] { return running; }},
        "n1", [this]() -> node::NodeInspection* { return running && seen ? &node_ : nullptr; },
        [this](AgentEnvironment& environment) {
          access_ =
              std::make_shared<const BackupAccess>(BackupAccess{.repositories = "/etc/repositories",
                                                                .scratch = {},
                                                                .temporary = "/agent/backup",
                                                                .files = host_.disk(),
                                                                .database = host_.disk(),
                                                                .clock = host_.clock(),
                                                                .random = random_,
                                                                .log = null_log(),
                                                                .jobs = *runner_,
                                                                .host = "machine"});
          environment.backups = access_;
        });
  }
  /// The process ends at this instant, as by SIGKILL; open() is the next one.
  void die(bool power = false, std::optional<std::uint64_t> torn_seed = std::nullopt) {
    host_.die(power, torn_seed);
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

  bool running = true;
  bool seen = true;  ///< by its agent, where it runs
  /// The instance that the agent sees while the server stops; empty: none.
  std::string seen_while_stopping;
  /// The server does not do what is wanted of it.
  bool stubborn = false;
  int starts = 0;
  std::string generation;
  Tree before;
  std::shared_ptr<const BackupAccess> access_;

 private:
  net::awaitable<Result<void>> set_running(bool wanted) {
    starts += wanted ? 1 : 0;
    if (!wanted && !seen_while_stopping.empty()) {
      offline_->see_running(seen_while_stopping);
    }
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

  test::ManualClock clock_;
  StillNode node_;
};

}  // namespace verger::agent
