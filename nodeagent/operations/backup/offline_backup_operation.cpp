#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/backup/backup_operations.h"
#include "nodeagent/operations/backup/repository_copy.h"
#include "nodeagent/operations/backup/scavenge_absence.h"
#include "nodeagent/operations/jobs/stopped_server_operation.h"

namespace verger::agent {
namespace {

using nlohmann::json;

// In the memory.
constexpr const char* kDatabase = "database";
constexpr const char* kIndex = "index";
constexpr const char* kGeneration = "generation";

/// Opens the repository before the server is stopped: one that does not answer must not keep it
/// down.
class RepositoryProbe final : public Job {
 public:
  RepositoryProbe(RepositoriesPointer repositories, api::BackupParameters wanted)
      : repositories_(std::move(repositories)), wanted_(std::move(wanted)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    const auto opened = repositories_->open(wanted_.repository, wanted_.repository_id);
    const bool is_new = !opened && opened.error().code == Errc::kNotFound &&
                        repositories_->config(wanted_.repository).has_value();
    if (!opened && !is_new) {
      return opened.error();
    }
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }

 private:
  RepositoriesPointer repositories_;
  api::BackupParameters wanted_;
};

/// A generation is recorded last, so that one that is there is the proof.
class OfflineBackupOperation final : public StoppedServerOperation {
 public:
  explicit OfflineBackupOperation(RepositoriesPointer repositories)
      : repositories_(std::move(repositories)) {}
  [[nodiscard]] std::string_view kind() const override { return api::kOfflineBackupKind; }

 protected:
  [[nodiscard]] std::vector<std::string_view> own_parameters() const override {
    auto out = api::backup_parameter_names<api::BackupParameters>();
    for (const auto& name : {kServiceDeadlineParameter, kThrottleParameter, kBytesParameter}) {
      std::erase(out, name);
    }
    return out;
  }

  net::awaitable<Result<void>> check(LocalNode node, const api::GossipMember& /*self*/,
                                     const OperationRecord& record, json& memory) override {
    if (!repositories_) {
      co_return no_repositories();
    }
    VERGER_CO_TRY(auto wanted, backup_parameters_of(record.request.parameters_json));
    VERGER_CO_RETURN_IF_ERROR(co_await repositories_->access().jobs.run(
        std::make_shared<RepositoryProbe>(repositories_, std::move(wanted)),
        std::make_shared<node::StopFlag>()));
    // One that is interrupted by the stop would have to be resumed.
    VERGER_CO_RETURN_IF_ERROR(co_await see_that_no_scavenge_runs(node));
    const auto info = client::to_result(co_await node.client.info());
    const auto* inspection = node.inspection();
    if (inspection == nullptr) {
      co_return Error{Errc::kUnavailable, "the server does not answer, so its state is unknown"};
    }
    memory[kServerVersionMember] = info ? info->version : std::string();
    memory[kDatabase] = inspection->database_directory().string();
    memory[kIndex] = inspection->index_directory().string();
    co_return Result<void>();
  }

  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode /*node*/,
                                               const OperationRecord& record) override {
    VERGER_TRY(auto wanted, backup_parameters_of(record.request.parameters_json));
    const auto memory = memory_of(record);
    const auto threads = wanted.threads;
    auto copy = std::make_shared<RepositoryCopy>(
        repositories_,
        CopyOrder{.to = std::move(wanted),
                  .source = {.directory = memory.value(kDatabase, std::string()),
                             .index_directory = memory.value(kIndex, std::string()),
                             .state = backup::SourceState::kStopped},
                  .server_version = memory.value(kServerVersionMember, std::string())},
        repositories_->access().jobs.make_parallel(threads));
    return std::make_shared<CopyPart>(std::move(copy), RepositoryCopy::Until::kEnd);
  }

  void keep_result(const MeteredJob& job, json& memory) override {
    memory[kGeneration] =
        json::parse(api::to_text(dynamic_cast<const CopyPart&>(job).copy()->generation()));
  }

  std::optional<Observation> verify(const node::NodeInspection& /*inspection*/,
                                    const OperationRecord& /*record*/,
                                    const json& memory) override {
    if (!memory.contains(kGeneration)) {
      return std::nullopt;
    }
    return Observation{
        .kind = Observation::Kind::kDone, .code = {}, .text = memory.at(kGeneration).dump()};
  }

  [[nodiscard]] std::string_view left_in_the_middle() const override {
    return "the agent ended in the middle; the next backup does not copy again what was stored";
  }

 private:
  RepositoriesPointer repositories_;
};

}  // namespace

std::unique_ptr<Operation> make_offline_backup_operation(RepositoriesPointer repositories) {
  return std::make_unique<OfflineBackupOperation>(std::move(repositories));
}

}  // namespace verger::agent
