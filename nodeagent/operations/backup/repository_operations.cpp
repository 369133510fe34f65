#include "nodeagent/operations/backup/backup_operations.h"
#include "nodeagent/operations/backup/check_job.h"
#include "nodeagent/operations/backup/retain_job.h"
#include "nodeagent/operations/jobs/job_operation.h"

namespace verger::agent {
namespace {

/// Work on a repository alone: whether the node runs does not matter.
class RepositoryOperation : public JobOperation {
 public:
  explicit RepositoryOperation(RepositoriesPointer repositories)
      : repositories_(std::move(repositories)) {}
  [[nodiscard]] bool needs_own_directories() const final { return false; }
  net::awaitable<Result<void>> look(LocalNode /*node*/, OperationRecord& record) final {
    if (!repositories_) {
      co_return no_repositories();
    }
    VERGER_CO_RETURN_IF_ERROR(make_job(repositories_, record.request.parameters_json));
    co_return Result<void>();
  }

 protected:
  /// Errors: kInvalidArgument. Begins nothing.
  [[nodiscard]] virtual Result<std::shared_ptr<MeteredJob>> make_job(
      RepositoriesPointer repositories, std::string_view parameters_json) const = 0;

  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(LocalNode /*node*/,
                                                              const OperationRecord& record) final {
    if (!repositories_) {
      co_return no_repositories();  // it was configured differently when the operation began
    }
    co_return make_job(repositories_, record.request.parameters_json);
  }
  node::JobRunner& runner(const LocalNode& node) const final {
    return repositories_ ? repositories_->access().jobs : *node.jobs;
  }

 private:
  RepositoriesPointer repositories_;
};

class BackupVerifyOperation final : public RepositoryOperation {
 public:
  using RepositoryOperation::RepositoryOperation;
  [[nodiscard]] std::string_view kind() const override { return api::kBackupVerifyKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return api::backup_parameter_names<api::BackupCheckParameters>();
  }

 protected:
  [[nodiscard]] Result<std::shared_ptr<MeteredJob>> make_job(
      RepositoriesPointer repositories, std::string_view parameters_json) const override {
    VERGER_TRY(auto parameters, check_parameters_of(parameters_json));
    return std::make_shared<BackupCheckJob>(std::move(repositories), std::move(parameters));
  }
  std::string result_of(const MeteredJob& job) override {
    return api::to_text(dynamic_cast<const BackupCheckJob&>(job).result());
  }
};

class BackupRetainOperation final : public RepositoryOperation {
 public:
  using RepositoryOperation::RepositoryOperation;
  [[nodiscard]] std::string_view kind() const override { return api::kBackupRetainKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return api::backup_parameter_names<api::BackupRetainParameters>();
  }

 protected:
  [[nodiscard]] Result<std::shared_ptr<MeteredJob>> make_job(
      RepositoriesPointer repositories, std::string_view parameters_json) const override {
    VERGER_TRY(auto parameters, retain_parameters_of(parameters_json));
    return std::make_shared<RetainJob>(std::move(repositories), std::move(parameters));
  }
  std::string result_of(const MeteredJob& job) override {
    return api::to_text(dynamic_cast<const RetainJob&>(job).result());
  }
};

}  // namespace

std::unique_ptr<Operation> make_backup_verify_operation(RepositoriesPointer repositories) {
  return std::make_unique<BackupVerifyOperation>(std::move(repositories));
}

std::unique_ptr<Operation> make_backup_retain_operation(RepositoriesPointer repositories) {
  return std::make_unique<BackupRetainOperation>(std::move(repositories));
}

std::vector<std::unique_ptr<Operation>> backup_operations(const RepositoriesPointer& repositories) {
  std::vector<std::unique_ptr<Operation>> out;
  out.push_back(make_backup_operation(repositories));
  out.push_back(make_offline_backup_operation(repositories));
  out.push_back(make_snapshot_backup_operation(repositories));
  out.push_back(make_backup_verify_operation(repositories));
  out.push_back(make_backup_retain_operation(repositories));
  return out;
}

}  // namespace verger::agent
