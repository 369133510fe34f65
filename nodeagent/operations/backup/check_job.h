#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/backup/generation_files.h"
#include "engine/backup/verify_job.h"
#include "engine/verify/verify_database_job.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/operations/backup/repositories.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// Verifies one generation, byte by byte and then as a database, and records the check in the
/// repository. Damage is a result, not an error.
class BackupCheckJob final : public MeteredJob {
 public:
  BackupCheckJob(std::shared_ptr<const Repositories> repositories,
                 api::BackupCheckParameters parameters);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Once it is done.
  [[nodiscard]] const api::BackupVerified& result() const { return result_; }

 private:
  enum class Phase : std::uint8_t { kOpen, kBytes, kStructure, kRecord, kDone };
  Result<void> look(Budget budget);
  Result<void> open();
  Result<void> step_bytes(Budget budget);
  Result<void> step_structure(Budget budget);
  Result<void> record();
  [[nodiscard]] Path scratch() const;
  void add_damage(std::string path, std::string text);

  std::shared_ptr<const Repositories> repositories_;
  api::BackupCheckParameters parameters_;
  Phase phase_ = Phase::kOpen;
  std::unique_ptr<OpenRepository> opened_;
  std::optional<backup::Manifest> manifest_;
  std::optional<backup::VerifyBytesJob> bytes_;
  std::optional<backup::GenerationFiles> files_;
  std::optional<verify::VerifyDatabaseJob> structure_;
  Monotonic began_{};
  std::uint64_t damaged_ = 0;  ///< findings, also those that are not in the result
  api::BackupVerified result_;
};

/// Of a request. Errors: kInvalidArgument.
Result<api::BackupCheckParameters> check_parameters_of(std::string_view parameters_json);

}  // namespace verger::agent
