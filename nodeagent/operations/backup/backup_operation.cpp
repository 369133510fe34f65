#include <nlohmann/json.hpp>

#include "nodeagent/operations/backup/backup_operations.h"
#include "nodeagent/operations/backup/repository_copy.h"
#include "nodeagent/operations/backup/scavenge_absence.h"
#include "nodeagent/operations/jobs/beside_server_operation.h"
#include "nodeagent/operations/jobs/stopped_server_operation.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// Looks after the copy, a second apart: a node that does not answer at once is no reason to begin
/// again.
constexpr int kLastLooks = 10;
constexpr std::chrono::seconds kBetweenLastLooks{1};

/// The controller that throttles and cancels it queries it, too; an agent that was restarted begins
/// it again, and what was stored is not copied again.
class BackupOperation final : public BesideServerOperation {
 public:
  explicit BackupOperation(RepositoriesPointer repositories)
      : repositories_(std::move(repositories)) {}
  [[nodiscard]] std::string_view kind() const override { return api::kBackupKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    auto out = api::backup_parameter_names<api::BackupParameters>();
    std::erase(out, kServiceDeadlineParameter);
    return out;
  }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(co_await BesideServerOperation::look(node, record));
    VERGER_CO_RETURN_IF_ERROR(co_await see_that_no_scavenge_runs(node));
    const auto info = client::to_result(co_await node.client.info());
    record.memory_json = json{{kServerVersionMember, info ? info->version : std::string()}}.dump();
    co_return Result<void>();
  }

 protected:
  Result<void> check(node::NodeInspection& /*inspection*/, const OperationRecord& record) override {
    if (!repositories_) {
      return no_repositories();
    }
    VERGER_RETURN_IF_ERROR(backup_parameters_of(record.request.parameters_json));
    return {};
  }

  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode /*node*/, node::NodeInspection& inspection,
                                               const OperationRecord& record) override {
    if (!repositories_) {
      return no_repositories();  // it was configured differently when the operation began
    }
    VERGER_TRY(auto wanted, backup_parameters_of(record.request.parameters_json));
    const auto threads = wanted.threads;
    auto copy = std::make_shared<RepositoryCopy>(
        repositories_,
        CopyOrder{.to = std::move(wanted),
                  .source = {.directory = inspection.database_directory(),
                             .index_directory = inspection.index_directory(),
                             .state = backup::SourceState::kLive},
                  .server_version = memory_of(record).value(kServerVersionMember, std::string())},
        repositories_->access().jobs.make_parallel(threads));
    return std::make_shared<CopyPart>(std::move(copy), RepositoryCopy::Until::kCopied);
  }

  node::JobRunner& runner(const LocalNode& node) const override {
    return repositories_ ? repositories_->access().jobs : *node.jobs;
  }

  net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                   const OperationRecord& /*record*/) override {
    VERGER_CO_TRY(const auto before, co_await see_that_no_scavenge_runs(node));
    const auto copy = dynamic_cast<const CopyPart&>(*job).copy();
    VERGER_CO_RETURN_IF_ERROR(co_await run_paced(node, std::move(job)));
    const auto after = co_await look_again(node);
    if (!after && after.error().code == Errc::kConflict) {
      co_return Error{Errc::kConflict,
                      "what began during the copy makes it unusable; nothing was "
                      "recorded as a backup: " +
                          after.error().message};
    }
    if (!after) {
      co_return after.error();
    }
    if (*after != before) {
      co_return Error{
          Errc::kConflict,
          "a scavenge ran during the copy; nothing was recorded as a backup: repeat it"};
    }
    co_return co_await run_paced(node,
                                 std::make_shared<CopyPart>(copy, RepositoryCopy::Until::kEnd));
  }

  std::string result_of(const MeteredJob& job) override {
    return api::to_text(dynamic_cast<const CopyPart&>(job).copy()->generation());
  }

 private:
  static net::awaitable<Result<ScavengesSeen>> look_again(LocalNode node) {
    for (int looks = 1;; ++looks) {
      auto seen = co_await see_that_no_scavenge_runs(node);
      if (node.control->stopping()) {
        co_return Error{Errc::kCancelled, "stopped between two steps"};
      }
      if (seen || seen.error().code != Errc::kUnavailable || looks == kLastLooks) {
        co_return seen;
      }
      co_await node.timers.sleep_for(kBetweenLastLooks);
    }
  }

  RepositoriesPointer repositories_;
};

}  // namespace

std::unique_ptr<Operation> make_backup_operation(RepositoriesPointer repositories) {
  return std::make_unique<BackupOperation>(std::move(repositories));
}

}  // namespace verger::agent
