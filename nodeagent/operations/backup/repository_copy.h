#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/backup/backup_job.h"
#include "nodeagent/api/agent_backups.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/operations/backup/repositories.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// In the memory of an operation that copies: what the node said of itself.
inline constexpr const char* kServerVersionMember = "version";

/// What is copied, and where to.
struct CopyOrder {
  api::BackupParameters to;
  /// With kStopped, its lock is taken and held. With kLive the caller has seen at the node that no
  /// scavenge runs, and looks once more before the copy is finished.
  backup::BackupSource source;
  std::string server_version;  ///< empty: not known
  Path directory{};            ///< the node's, where `source` is a snapshot of it
};

/// A backup of the node's database into one of the agent's repositories: engine/backup's job, from
/// opening the repository and finding the parent on. It is stepped by CopyParts. Destroying it
/// before its end leaves nothing that is listed as a backup, and what was stored to the next one.
class RepositoryCopy {
 public:
  /// `runner` is for files side by side; null: one after the other.
  RepositoryCopy(std::shared_ptr<const Repositories> repositories, CopyOrder order,
                 std::unique_ptr<scavenge::ParallelRunner> runner);

  enum class Until : std::uint8_t {
    kCopied,  ///< all is stored; nothing is compared or recorded yet
    kEnd,
  };
  /// True once it is that far. Errors: those of Repositories::open(), find_state() and BackupJob.
  Result<bool> step(Budget budget, Until until);
  [[nodiscard]] JobProgress progress() const;
  /// Before the next step.
  [[nodiscard]] std::chrono::milliseconds rest() const { return rest_; }
  /// At its end.
  [[nodiscard]] const api::BackupGeneration& generation() const { return generation_; }

 private:
  enum class Phase : std::uint8_t { kOpen, kParent, kCopy, kDone };
  Result<void> open();
  Result<void> begin();
  void make_job(std::optional<backup::Manifest> parent);
  Result<void> step_copy(Budget budget);

  std::shared_ptr<const Repositories> repositories_;
  CopyOrder order_;
  std::unique_ptr<scavenge::ParallelRunner> runner_;
  Phase phase_ = Phase::kOpen;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<OpenRepository> opened_;
  std::optional<backup::BackupJob> job_;
  std::chrono::milliseconds rest_{0};
  std::uint32_t units_;  ///< of the next step
  api::BackupGeneration generation_;
};

/// Steps a copy until it is so far.
class CopyPart final : public MeteredJob {
 public:
  CopyPart(std::shared_ptr<RepositoryCopy> copy, RepositoryCopy::Until until)
      : copy_(std::move(copy)), until_(until) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override { return copy_->progress(); }
  [[nodiscard]] const std::shared_ptr<RepositoryCopy>& copy() const { return copy_; }

 private:
  std::shared_ptr<RepositoryCopy> copy_;
  RepositoryCopy::Until until_;
};

/// Of a request for a backup. Errors: kInvalidArgument.
Result<api::BackupParameters> backup_parameters_of(std::string_view parameters_json);

}  // namespace verger::agent
