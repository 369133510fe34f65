#include <functional>

#include <nlohmann/json.hpp>

#include "engine/backup/kept_files.h"
#include "engine/backup/manifest.h"
#include "engine/base/failpoint.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/job_operation.h"
#include "nodeagent/operations/restore/restore_operations.h"
#include "nodeagent/operations/restore/stopped_files.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// One call of the engine.
class KeptFilesJob final : public MeteredJob {
 public:
  KeptFilesJob(std::string phase, std::function<Result<std::string>()> call)
      : phase_(std::move(phase)), call_(std::move(call)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_TRY(result_, call_());
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  [[nodiscard]] JobProgress progress() const override { return {.phase = phase_}; }
  [[nodiscard]] const std::string& result() const { return result_; }

 private:
  std::string phase_;
  std::function<Result<std::string>()> call_;
  std::string result_;
};

class KeptFilesOperation : public JobOperation {
 public:
  [[nodiscard]] std::vector<std::string_view> parameters() const final {
    return api::backup_parameter_names<api::RestoredGeneration>();
  }
  [[nodiscard]] bool works_on_files() const final { return true; }

 protected:
  static Result<std::string> generation_of(const OperationRecord& record) {
    VERGER_TRY(const auto parameters, api::parse_backup_parameters<api::RestoredGeneration>(
                                          record.request.parameters_json));
    // It becomes part of a path.
    if (!backup::is_generation_id(parameters.generation)) {
      return Error{Errc::kInvalidArgument, "\"generation\" must be the id of a backup"};
    }
    return parameters.generation;
  }
  static backup::RestoredDatabase database_of(const LocalNode& node) {
    const auto& place = node.offline->place();
    return {.directory = place.database, .index_directory = place.index};
  }
  net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                   const OperationRecord& /*record*/) final {
    const auto hold = node.offline->hold_files();
    co_return co_await runner(node).run(std::move(job), node.control->stop_flag());
  }
  std::string result_of(const MeteredJob& job) final {
    return dynamic_cast<const KeptFilesJob&>(job).result();
  }
};

class RestoreRevertOperation final : public KeptFilesOperation {
 public:
  [[nodiscard]] std::string_view kind() const override { return api::kRestoreRevertKind; }
  [[nodiscard]] bool needs_own_directories() const override { return false; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(generation_of(record));
    co_return co_await server_is_stopped(node);
  }

 protected:
  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(
      LocalNode node, const OperationRecord& record) override {
    VERGER_CO_TRY(auto generation, generation_of(record));
    VERGER_CO_RETURN_IF_ERROR(co_await server_is_stopped(node));
    if (node.offline->kept_stopped_by().empty()) {
      VERGER_CO_RETURN_IF_ERROR(node.offline->keep_stopped("operation " + record.request.id,
                                                           external::StopOrder::Server::kStopped));
    }
    VERGER_FAILPOINT("agent.restore-revert.begin");
    auto& files = node.offline->machine().files;
    co_return std::make_shared<KeptFilesJob>(
        "putting the old files back",
        [&files, database = database_of(node),
         generation = std::move(generation)]() -> Result<std::string> {
          VERGER_TRY(const bool reverted, backup::revert_restore(files, database, generation));
          return json{{"reverted", reverted}}.dump();
        });
  }
};

class RestoreDiscardOperation final : public KeptFilesOperation {
 public:
  [[nodiscard]] std::string_view kind() const override { return api::kRestoreDiscardOldKind; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(generation_of(record));
    co_return needs_service_control(node);
  }

 protected:
  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(
      LocalNode node, const OperationRecord& record) override {
    VERGER_CO_TRY(auto generation, generation_of(record));
    VERGER_CO_RETURN_IF_ERROR(needs_service_control(node));
    auto& files = node.offline->machine().files;
    co_return std::make_shared<KeptFilesJob>(
        "removing the old files",
        [&files, database = database_of(node),
         generation = std::move(generation)]() -> Result<std::string> {
          VERGER_TRY(const auto bytes, backup::discard_kept_files(files, database, generation));
          return json{{"bytes", bytes}}.dump();
        });
  }
};

}  // namespace

std::unique_ptr<Operation> make_restore_revert_operation() {
  return std::make_unique<RestoreRevertOperation>();
}
std::unique_ptr<Operation> make_restore_discard_operation() {
  return std::make_unique<RestoreDiscardOperation>();
}

std::vector<std::unique_ptr<Operation>> restore_operations(
    const std::shared_ptr<const Repositories>& repositories) {
  std::vector<std::unique_ptr<Operation>> out;
  out.push_back(make_stop_server_operation());
  out.push_back(make_restore_operation(repositories));
  out.push_back(make_restore_revert_operation());
  out.push_back(make_restore_discard_operation());
  return out;
}

}  // namespace verger::agent
