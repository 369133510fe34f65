#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "nodeagent/http/task_group.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/operations/backup/catalogue_jobs.h"

namespace verger::agent {

/// What the agent shows of its repositories. Each is read by a job of its own, one at a time, and
/// waited for with a limit: one that does not answer holds up neither the others nor the agent.
/// What was read of a generation is kept, up to a limit: it does not change. One executor.
class BackupCatalogue {
 public:
  using Self = std::shared_ptr<BackupCatalogue>;
  BackupCatalogue(std::shared_ptr<const BackupAccess> access, net::any_io_executor executor,
                  http::Timers& timers);

  /// As a crash.
  void abandon();

  /// By name; what is wrong with one is in its entry. Errors: those of reading the directory of
  /// repositories.
  static net::awaitable<Result<std::vector<api::BackupRepository>>> repositories(Self self);
  /// Of one repository, by time. `node`: only its; empty: all nodes'. Errors: kNotFound (no such
  /// name), those of the repository, kUnavailable (it does not answer).
  static net::awaitable<Result<std::vector<api::BackupGeneration>>> generations(Self self,
                                                                                std::string name,
                                                                                std::string node);
  /// How long a repository is waited for.
  static constexpr std::chrono::milliseconds kPatience{8'000};
  /// Generations kept, of all repositories.
  static constexpr std::size_t kKept = 5'000;

 private:
  /// A job that reads, shared by all who wait for it.
  struct Look {
    std::shared_ptr<CatalogueJob> job;
    bool ended = false;
    Result<void> outcome{};
  };
  struct Kept {
    std::string id;  ///< of the repository
    CatalogueJob::Generations generations;
  };

  /// Joins the look that is under way, or begins one. kUnavailable: it has not ended in time.
  static net::awaitable<Result<std::shared_ptr<Look>>> look_at(Self self, std::string name);
  static net::awaitable<void> run(Self self, std::string name, std::shared_ptr<Look> look);
  void keep(const std::string& name, const CatalogueJob& job);

  std::shared_ptr<const Repositories> repositories_;
  http::Timers& timers_;
  http::TaskGroup tasks_;
  std::map<std::string, std::shared_ptr<Look>> looks_;  ///< under way, by name
  std::map<std::string, Kept> kept_;                    ///< by name
  bool gone_ = false;
};

}  // namespace verger::agent
