#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/job.h"
#include "nodeagent/api/agent_backups.h"
#include "nodeagent/operations/backup/repositories.h"

namespace verger::agent {

/// A manifest as the agent interface has it; without its checks.
api::BackupGeneration generation_of(const backup::Manifest& manifest);

/// Reads what one repository is and which generations it has, a few manifests in each step.
class CatalogueJob final : public Job {
 public:
  using Generations = std::map<std::string, api::BackupGeneration, std::less<>>;
  /// `known`: generations that need not be read again, by id, of the repository `known_id`.
  CatalogueJob(std::shared_ptr<const Repositories> repositories, std::string name,
               std::string known_id, Generations known);
  /// Error: the repository cannot be used, as it says; repository() has it as well.
  Result<StepOutcome> step(Budget budget) override;

  /// Once it has ended, in any way.
  [[nodiscard]] const api::BackupRepository& repository() const { return repository_; }
  /// Once it is done, by id.
  [[nodiscard]] const Generations& generations() const { return generations_; }

 private:
  enum class Phase : std::uint8_t { kOpen, kManifests, kChecks, kDone };
  Result<void> look();
  Result<void> open();
  Result<void> read_some();
  Result<void> read_checks();

  std::shared_ptr<const Repositories> repositories_;
  std::string known_id_;
  Generations known_;
  Phase phase_ = Phase::kOpen;
  std::unique_ptr<OpenRepository> opened_;
  std::vector<std::string> unread_;  ///< ids
  api::BackupRepository repository_;
  Generations generations_;
};

/// The names of the repositories.
class NamesJob final : public Job {
 public:
  explicit NamesJob(std::shared_ptr<const Repositories> repositories)
      : repositories_(std::move(repositories)) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::shared_ptr<const Repositories> repositories_;
  std::vector<std::string> names_;
};

}  // namespace verger::agent
