#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/backup/disk_snapshots.h"
#include "nodeagent/operations/backup/backup_operations.h"
#include "nodeagent/operations/backup/repository_copy.h"
#include "nodeagent/operations/jobs/job_operation.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// In the memory.
constexpr const char* kSnapshotDatabase = "database";
constexpr const char* kSnapshotIndex = "index";

/// Another backup may be deleting its snapshots.
constexpr int kMostTriesToOpen = 60;
constexpr milliseconds kBetweenTries{1'000};

struct SnapshotCopyOrder {
  CopyOrder copy;  ///< all but where the snapshots are
  Path database;
  Path index;
};

/// Snapshots, and the copy of them. They are still there at its end: who drives it deletes them.
class SnapshotCopy final : public MeteredJob {
 public:
  SnapshotCopy(RepositoriesPointer repositories, SnapshotCopyOrder order)
      : repositories_(std::move(repositories)), order_(std::move(order)) {}

  Result<StepOutcome> step(Budget budget) override {
    if (!snapshots_) {
      return open();
    }
    if (!copy_) {
      VERGER_TRY(const auto outcome, make_->step(budget));
      if (outcome.kind != StepOutcome::Kind::kDone) {
        return outcome;
      }
      begin_copy();
      return StepOutcome{};
    }
    return part_->step(budget);
  }

  [[nodiscard]] JobProgress progress() const override {
    return copy_ ? copy_->progress() : JobProgress{.phase = "making a disk snapshot"};
  }
  /// Once it is done.
  [[nodiscard]] api::BackupGeneration generation() const {
    auto out = copy_->generation();
    out.warnings.insert(out.warnings.end(), warnings_.begin(), warnings_.end());
    return out;
  }
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  /// What was made; null: it did not come to that. It is no longer this job's.
  std::unique_ptr<backup::DiskSnapshots> take_snapshots() { return std::move(snapshots_); }

 private:
  Result<StepOutcome> open() {
    const auto& access = repositories_->access();
    auto opened = backup::DiskSnapshots::open(access.files, access.snapshots, access.clock,
                                              access.random, access.log);
    if (!opened && opened.error().code == Errc::kUnavailable && ++tries_ < kMostTriesToOpen) {
      return StepOutcome{StepOutcome::Kind::kRest, kBetweenTries};
    }
    if (!opened) {
      return opened.error();
    }
    snapshots_ = *std::move(opened);
    make_.emplace(*snapshots_, order_.database, order_.index);
    return StepOutcome{};
  }

  void begin_copy() {
    auto order = order_.copy;
    order.source = snapshots_->source();
    order.directory = order_.database;
    const auto threads = order.to.threads;
    copy_ = std::make_shared<RepositoryCopy>(repositories_, std::move(order),
                                             repositories_->access().jobs.make_parallel(threads));
    part_.emplace(copy_, RepositoryCopy::Until::kEnd);
  }

  RepositoriesPointer repositories_;
  SnapshotCopyOrder order_;
  int tries_ = 0;
  std::unique_ptr<backup::DiskSnapshots> snapshots_;
  std::optional<backup::MakeSnapshotsJob> make_;
  std::shared_ptr<RepositoryCopy> copy_;
  std::optional<CopyPart> part_;
  std::vector<std::string> warnings_;
};

/// Deletes what was made.
class DeleteSnapshots final : public Job {
 public:
  explicit DeleteSnapshots(std::unique_ptr<backup::DiskSnapshots> snapshots)
      : snapshots_(std::move(snapshots)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    auto outcome = snapshots_->step_delete();
    if (!outcome || outcome->kind == StepOutcome::Kind::kDone) {
      snapshots_.reset();
    }
    return outcome;
  }

 private:
  std::unique_ptr<backup::DiskSnapshots> snapshots_;
};

/// The same, of an earlier process.
class DeleteLeftSnapshots final : public Job {
 public:
  explicit DeleteLeftSnapshots(std::shared_ptr<const BackupAccess> access)
      : access_(std::move(access)) {}
  Result<StepOutcome> step(Budget budget) override {
    if (!delete_) {
      VERGER_TRY(const bool is_there, access_->files.exists(access_->snapshots.state));
      if (!is_there) {
        return StepOutcome{.kind = StepOutcome::Kind::kDone};
      }
      VERGER_TRY(auto opened,
                 backup::DiskSnapshots::open(access_->files, access_->snapshots, access_->clock,
                                             access_->random, access_->log));
      delete_.emplace(std::move(opened));
    }
    return delete_->step(budget);
  }

 private:
  std::shared_ptr<const BackupAccess> access_;
  std::optional<DeleteSnapshots> delete_;
};

/// What it makes beside the agent is deleted by the next call of act(), or by the next agent.
class SnapshotBackupOperation final : public JobOperation {
 public:
  explicit SnapshotBackupOperation(RepositoriesPointer repositories)
      : repositories_(std::move(repositories)) {}
  [[nodiscard]] std::string_view kind() const override { return api::kSnapshotBackupKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    auto out = api::backup_parameter_names<api::BackupParameters>();
    std::erase(out, kServiceDeadlineParameter);
    return out;
  }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(configured());
    VERGER_CO_RETURN_IF_ERROR(backup_parameters_of(record.request.parameters_json));
    auto* inspection = node.inspection();
    if (inspection == nullptr) {
      co_return Error{Errc::kUnavailable, "the server does not answer; this needs it running"};
    }
    auto memory = json{{kSnapshotDatabase, inspection->database_directory().string()},
                       {kSnapshotIndex, inspection->index_directory().string()}};
    const auto info = client::to_result(co_await node.client.info());
    memory[kServerVersionMember] = info ? info->version : std::string();
    record.memory_json = memory.dump();
    co_return Result<void>();
  }

 protected:
  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(
      LocalNode /*node*/, const OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(configured());
    VERGER_CO_TRY(auto wanted, backup_parameters_of(record.request.parameters_json));
    const auto memory = memory_of(record);
    SnapshotCopyOrder order{
        .copy = {.to = std::move(wanted),
                 .source = {},
                 .server_version = memory.value(kServerVersionMember, std::string())},
        .database = memory.value(kSnapshotDatabase, std::string()),
        .index = memory.value(kSnapshotIndex, std::string())};
    co_return std::make_shared<SnapshotCopy>(repositories_, std::move(order));
  }

  node::JobRunner& runner(const LocalNode& node) const override {
    return repositories_ ? repositories_->access().jobs : *node.jobs;
  }

  net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                   const OperationRecord& /*record*/) override {
    auto outcome = co_await run_paced(node, job);
    auto& copy = dynamic_cast<SnapshotCopy&>(*job);
    auto made = copy.take_snapshots();
    if (!made) {
      co_return outcome;
    }
    // Whatever became of the copy, and at full speed: they grow with each write of the node.
    const auto deleted = co_await runner(node).run(
        std::make_shared<DeleteSnapshots>(std::move(made)), std::make_shared<node::StopFlag>());
    if (!deleted) {
      node.log.error("a disk snapshot was not deleted", {{"error", deleted.error().message}});
      copy.warn(deleted.error().message);
    }
    co_return outcome;
  }

  std::string result_of(const MeteredJob& job) override {
    return api::to_text(dynamic_cast<const SnapshotCopy&>(job).generation());
  }

 private:
  [[nodiscard]] Result<void> configured() const {
    if (!repositories_) {
      return no_repositories();
    }
    if (repositories_->access().snapshots.program.empty()) {
      return Error{Errc::kUnsupported,
                   "the agent has no program that makes disk snapshots (--snapshot-command)"};
    }
    return {};
  }

  RepositoriesPointer repositories_;
};

}  // namespace

std::unique_ptr<Operation> make_snapshot_backup_operation(RepositoriesPointer repositories) {
  return std::make_unique<SnapshotBackupOperation>(std::move(repositories));
}

net::awaitable<void> delete_left_snapshots(std::shared_ptr<const BackupAccess> access) {
  if (access->snapshots.program.empty()) {
    co_return;
  }
  const auto deleted = co_await access->jobs.run(std::make_shared<DeleteLeftSnapshots>(access),
                                                 std::make_shared<node::StopFlag>());
  // kUnavailable of the directory's lock: a backup is at it already, and deletes them first.
  if (!deleted) {
    access->log.warning("disk snapshots of an earlier backup may be left",
                        {{"error", deleted.error().message}});
  }
}

}  // namespace verger::agent
