#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nodeagent/api/backup_operations.h"
#include "nodeagent/operations/backup/repositories.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// Deletes generations of a repository, by rules or by id, and removes the content of those that
/// were deleted a day ago or earlier: until then a deletion can be undone with `verger-db backup
/// delete --undo`. A step deletes one generation, or removes content.
class RetainJob final : public MeteredJob {
 public:
  RetainJob(std::shared_ptr<const Repositories> repositories,
            api::BackupRetainParameters parameters);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Once it is done.
  [[nodiscard]] const api::BackupRetained& result() const { return result_; }

 private:
  enum class Phase : std::uint8_t { kOpen, kManifests, kMark, kSweep, kDone };
  Result<void> look();
  Result<void> open();
  Result<void> read_some();
  Result<void> decide();
  Result<void> mark_next();
  Result<void> sweep();

  std::shared_ptr<const Repositories> repositories_;
  api::BackupRetainParameters parameters_;
  Phase phase_ = Phase::kOpen;
  std::unique_ptr<OpenRepository> opened_;
  std::vector<std::string> unread_;          ///< ids
  std::vector<backup::Manifest> manifests_;  ///< without their files
  std::vector<std::string> condemned_;       ///< ids; the next one last
  api::BackupRetained result_;
};

/// Of a request. Errors: kInvalidArgument.
Result<api::BackupRetainParameters> retain_parameters_of(std::string_view parameters_json);

}  // namespace verger::agent
