#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "engine/backup/restore_job.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/backup/repositories.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// What of a generation a restore needs to know before it begins.
struct RestoreSource {
  std::unique_ptr<OpenRepository> repository;
  backup::Manifest manifest;
};
/// Opens the repository and reads the manifest. Errors: those of Repositories::open(); kNotFound
/// (no such generation), kCorruption.
Result<RestoreSource> open_restore_source(const Repositories& repositories,
                                          const api::BackupTarget& target,
                                          std::string_view generation);

/// Restores a generation from a repository of the agent into a directory. Opens what it needs in
/// its first step. In two lives: the first one ends once everything is in place and verified, and
/// after allow_finish() the second one removes or keeps the old files; so what is done can be
/// journaled before nothing of it can be seen.
class RestoreWork final : public MeteredJob {
 public:
  struct Target {
    Path directory{};
    Path index_directory{};  ///< empty: "index" in `directory`
    bool keep_old = false;
    std::size_t threads = 1;
    /// The directory must be the one that the generation was made of, if that was on this machine.
    bool same_directory = false;
    std::string host{};  ///< of this machine
    backup::IndexSource index_from = backup::IndexSource::kBackup;
  };
  RestoreWork(std::shared_ptr<const Repositories> repositories, api::BackupTarget from,
              std::string generation, Target target, FileSystem& files);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;

  /// `result`: what result() gives from now on.
  void allow_finish(std::string result) {
    may_finish_ = true;
    result_ = std::move(result);
  }
  [[nodiscard]] const std::string& result() const { return result_; }
  [[nodiscard]] bool keeps_old() const { return target_.keep_old; }
  // From any thread.
  /// The old files are touched from here on: it has to come to its end.
  [[nodiscard]] bool replaces_files() const { return replaces_files_; }
  // Between its lives.
  [[nodiscard]] bool is_in_place() const { return job_ && job_->is_in_place(); }
  /// Once the first step was done.
  [[nodiscard]] const backup::Manifest& manifest() const { return source_->manifest; }
  [[nodiscard]] const OpenRepository& repository() const { return *source_->repository; }

 private:
  Result<void> open();

  std::shared_ptr<const Repositories> repositories_;
  api::BackupTarget from_;
  std::string generation_;
  Target target_;
  FileSystem& files_;
  std::optional<RestoreSource> source_;
  std::unique_ptr<scavenge::ParallelRunner> runner_;
  std::unique_ptr<backup::RestoreJob> job_;
  bool may_finish_ = false;
  std::string result_;
  std::atomic<bool> replaces_files_ = false;
  std::string_view phase_;          ///< of the last progress
  std::int64_t earlier_bytes_ = 0;  ///< read or written in the phases before
  std::uint64_t phase_began_at_ = 0;
  std::int64_t phase_bytes_ = 0;
};

}  // namespace verger::agent
