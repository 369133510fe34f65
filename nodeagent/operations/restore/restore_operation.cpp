#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/backup/kept_files.h"
#include "engine/base/failpoint.h"
#include "nodeagent/operations/jobs/job_operation.h"
#include "nodeagent/operations/restore/restore_operations.h"
#include "nodeagent/operations/restore/restore_work.h"
#include "nodeagent/operations/restore/stopped_files.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// Of the memory: when it began, in ticks of the wall clock.
constexpr const char* kBegan = "began";
/// Of the memory, once everything is in place and verified: the result.
constexpr const char* kInPlace = "inPlace";

/// Reads the manifest, so that what cannot be restored is refused before anything is begun.
class ManifestLook final : public Job {
 public:
  ManifestLook(std::shared_ptr<const Repositories> repositories, api::RestoreParameters parameters)
      : repositories_(std::move(repositories)), parameters_(std::move(parameters)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_RETURN_IF_ERROR(
        open_restore_source(*repositories_, parameters_, parameters_.generation));
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }

 private:
  std::shared_ptr<const Repositories> repositories_;
  api::RestoreParameters parameters_;
};

/// Of a restore that has ended already; its result was not stored yet.
class NothingLeft final : public MeteredJob {
 public:
  explicit NothingLeft(std::string result) : result_(std::move(result)) {}
  [[nodiscard]] const std::string& result() const { return result_; }
  Result<StepOutcome> step(Budget /*budget*/) override {
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  [[nodiscard]] JobProgress progress() const override { return {}; }

 private:
  std::string result_;
};

class RestoreOperation final : public JobOperation {
 public:
  explicit RestoreOperation(std::shared_ptr<const Repositories> repositories)
      : repositories_(std::move(repositories)) {}
  [[nodiscard]] std::string_view kind() const override { return api::kRestoreKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return api::backup_parameter_names<api::RestoreParameters>();
  }
  [[nodiscard]] bool works_on_files() const override { return true; }
  /// No server runs that could prove it: server_is_stopped() looks at what can be seen.
  [[nodiscard]] bool needs_own_directories() const override { return false; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto parameters, parse(record));
    if (!repositories_) {
      co_return Error{Errc::kUnsupported, "the agent has no repositories (--backup-repositories)"};
    }
    VERGER_CO_RETURN_IF_ERROR(co_await server_is_stopped(node));
    co_return co_await repositories_->access().jobs.run(
        std::make_shared<ManifestLook>(repositories_, parameters),
        std::make_shared<node::StopFlag>());
  }

 protected:
  [[nodiscard]] node::JobRunner& runner(const LocalNode& node) const override {
    return repositories_ ? repositories_->access().jobs : *node.jobs;
  }

  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(
      LocalNode node, const OperationRecord& record) override {
    VERGER_CO_TRY(const auto parameters, parse(record));
    if (!repositories_ || node.offline == nullptr) {
      co_return Error{Errc::kUnsupported,
                      "the agent no longer has its repositories, or no way to stop and start its "
                      "server; configure it as before, and restore the same backup again"};
    }
    auto memory = memory_of(record);
    const auto& place = node.offline->place();
    auto& files = node.offline->machine().files;
    if (memory.contains(kInPlace)) {
      VERGER_CO_TRY(const auto unfinished, backup::find_unfinished_restore(files, place.database));
      if (!unfinished) {
        co_return std::make_shared<NothingLeft>(memory.at(kInPlace).dump());
      }
    }
    // What was true at the last look may have changed, above all after a restart of the agent.
    VERGER_CO_RETURN_IF_ERROR(co_await server_is_stopped(node));
    if (node.offline->kept_stopped_by().empty()) {
      VERGER_CO_RETURN_IF_ERROR(node.offline->keep_stopped("operation " + record.request.id,
                                                           external::StopOrder::Server::kStopped));
    }
    if (!memory.contains(kBegan)) {
      memory[kBegan] = node.clock.now().value();
      remember(node, memory);
    }
    VERGER_FAILPOINT("agent.restore.before-copy");
    co_return std::make_shared<RestoreWork>(
        repositories_, parameters, parameters.generation,
        RestoreWork::Target{.directory = place.database,
                            .index_directory = place.index,
                            .keep_old = parameters.keep_old,
                            .threads = static_cast<std::size_t>(parameters.threads),
                            .same_directory = !parameters.other_node,
                            .host = repositories_->access().host,
                            .index_from = backup::IndexSource::kFaster},
        files);
  }

  net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                   const OperationRecord& record) override {
    const auto work = std::dynamic_pointer_cast<RestoreWork>(job);
    if (!work) {
      co_return Result<void>();
    }
    const auto hold = node.offline->hold_files();
    auto worked = co_await drive(node, work, node.control->stop_flag());
    if (!worked && worked.error().code == Errc::kCancelled && node.control->cancelled() &&
        work->replaces_files()) {
      // Too late: a database in pieces is of no use to who cancelled.
      worked = co_await drive(node, work, std::make_shared<node::StopFlag>());
    }
    VERGER_CO_RETURN_IF_ERROR(worked);
    auto memory = memory_of(record);
    auto result = api::to_text(restored(node, *work, memory));
    memory[kInPlace] = json::parse(result);
    remember(node, memory);
    VERGER_FAILPOINT("agent.restore.in-place");
    work->allow_finish(std::move(result));
    worked = co_await drive(node, work, std::make_shared<node::StopFlag>());
    VERGER_FAILPOINT("agent.restore.finished");
    co_return worked;
  }

  std::string result_of(const MeteredJob& job) override {
    const auto* work = dynamic_cast<const RestoreWork*>(&job);
    return work != nullptr ? work->result() : dynamic_cast<const NothingLeft&>(job).result();
  }

 private:
  static Result<api::RestoreParameters> parse(const OperationRecord& record) {
    VERGER_TRY(auto parameters, api::parse_backup_parameters<api::RestoreParameters>(
                                    record.request.parameters_json));
    if (parameters.generation.empty() || parameters.repository.empty()) {
      return Error{Errc::kInvalidArgument,
                   "parameters of restore: \"repository\" and \"generation\" are needed"};
    }
    constexpr std::int32_t kMostThreads = 16;
    if (parameters.threads < 1 || parameters.threads > kMostThreads) {
      return Error{Errc::kInvalidArgument, "threads must be 1 to 16"};
    }
    return parameters;
  }

  static void remember(const LocalNode& node, const json& memory) {
    if (node.remember) {
      node.remember(memory.dump());
    }
  }

  /// It has to come to its end whether a controller looks at it or not: the server is down.
  net::awaitable<Result<void>> drive(LocalNode node, std::shared_ptr<RestoreWork> work,
                                     std::shared_ptr<const node::StopFlag> flag) const {
    auto paced = std::make_shared<PacedJob>(std::move(work), node.control, node.clock,
                                            PacedJob::Lease::kNone);
    co_return co_await runner(node).run(std::move(paced), std::move(flag));
  }

  static api::Restored restored(const LocalNode& node, const RestoreWork& work,
                                const json& memory) {
    const auto& manifest = work.manifest();
    const auto began = memory.value(kBegan, node.clock.now().value());
    api::Restored out{.bytes = static_cast<std::int64_t>(manifest.restored_bytes()),
                      .duration_ms = (node.clock.now().value() - began) / (kTicksPerSecond / 1000),
                      .end_position = manifest.positions.end.value()};
    if (work.keeps_old()) {
      out.old_files = (node.offline->place().database / ("old-before-" + manifest.id)).string();
    }
    return out;
  }

  std::shared_ptr<const Repositories> repositories_;
};

}  // namespace

std::unique_ptr<Operation> make_restore_operation(
    std::shared_ptr<const Repositories> repositories) {
  return std::make_unique<RestoreOperation>(std::move(repositories));
}

}  // namespace verger::agent
