#include "nodeagent/operations/drill/drill_operation.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "engine/base/failpoint.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/operations/drill/drill_place.h"
#include "nodeagent/operations/drill/drill_reading.h"
#include "nodeagent/operations/drill/drill_server.h"
#include "nodeagent/operations/jobs/job_operation.h"
#include "nodeagent/operations/restore/restore_work.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

std::int64_t in_ms(Monotonic duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

/// A call that blocks, as a job.
class Call final : public Job {
 public:
  explicit Call(std::function<Result<void>()> call) : call_(std::move(call)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_RETURN_IF_ERROR(call_());
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }

 private:
  std::function<Result<void>()> call_;
};

/// A drill from its beginning to its end; the job of the operation's first part, and what the other
/// parts leave. Its members are used by one of them at a time.
class Drill final : public MeteredJob {
 public:
  Drill(std::shared_ptr<const Repositories> repositories, api::BackupCheckParameters parameters)
      : repositories_(std::move(repositories)), parameters_(std::move(parameters)) {
    drilled.generation = parameters_.generation;
  }

  /// The generation, the place, and whether there is room for it.
  Result<StepOutcome> step(Budget /*budget*/) override {
    const auto& access = repositories_->access();
    VERGER_TRY(source, open_restore_source(*repositories_, parameters_, parameters_.generation));
    const auto& manifest = source->manifest;
    VERGER_TRY(place, DrillPlace::open(access.files, access.scratch, manifest.id));
    VERGER_RETURN_IF_ERROR(place->check_space(
        manifest.restored_bytes() + static_cast<std::uint64_t>(manifest.positions.chunk_size)));
    drilled.end_position = manifest.positions.end.value();
    drilled.age_ms =
        (access.clock.now().value() - manifest.checkpoints_at.value()) / (kTicksPerSecond / 1000);
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  [[nodiscard]] JobProgress progress() const override { return {.phase = "opening the backup"}; }

  [[nodiscard]] const api::BackupCheckParameters& parameters() const { return parameters_; }

  /// What it found is a statement on the backup, and not on the circumstances.
  static bool is_finding(const Error& error) {
    return error.code == Errc::kCorruption || error.code == Errc::kNotFound ||
           error.code == Errc::kUnsupported;
  }
  void fail(std::string why) {
    drilled.passed = false;
    drilled.summary = std::move(why);
  }

  void compare(const DrillFindings& found) {
    const auto& digests = source->manifest.digests;
    const auto logical = digests ? digests->logical : before.logical;
    const auto readable = digests && digests->readable ? *digests->readable : before.readable;
    drilled.logical_equal = found.logical == logical;
    drilled.readable_equal = found.readable == readable;
    drilled.streams = found.streams;
    drilled.events = found.events;
    if (!drilled.logical_equal || !drilled.readable_equal) {
      fail(fmt::format("the {} digest of the restored database is {}, and not {}",
                       drilled.logical_equal ? "readable" : "logical",
                       to_hex(drilled.logical_equal ? found.readable : found.logical),
                       to_hex(drilled.logical_equal ? readable : logical)));
      return;
    }
    drilled.passed = true;
    drilled.summary = fmt::format(
        "restored in {} s, led after {} s, {} streams with {} events read in {} s, digests equal",
        drilled.restore_ms / 1000, drilled.start_ms / 1000, drilled.streams, drilled.events,
        drilled.read_ms / 1000);
  }
  /// The manifest lacks a digest, so that the restored files are read before a server has them,
  /// too.
  [[nodiscard]] bool needs_digests_before() const {
    return !source->manifest.digests || !source->manifest.digests->readable;
  }

  Result<void> record() const {
    const auto& access = repositories_->access();
    backup::BackupCheck check;
    check.kind = backup::BackupCheck::Kind::kDrill;
    check.at = access.clock.now();
    check.by = parameters_.by;
    check.passed = drilled.passed;
    check.summary = drilled.summary;
    check.duration_ms = drilled.restore_ms + drilled.start_ms + drilled.read_ms;
    check.position = source->manifest.positions.end;
    check.figures = {{"restoreMs", drilled.restore_ms}, {"startMs", drilled.start_ms},
                     {"readMs", drilled.read_ms},       {"ageMs", drilled.age_ms},
                     {"streams", drilled.streams},      {"events", drilled.events}};
    return source->repository->repository.add_check(source->manifest.id, check);
  }

  std::optional<RestoreSource> source;
  std::unique_ptr<DrillPlace> place;
  DrillFindings before;
  api::BackupDrilled drilled;

 private:
  std::shared_ptr<const Repositories> repositories_;
  api::BackupCheckParameters parameters_;
};

class DrillOperation final : public JobOperation {
 public:
  DrillOperation(std::shared_ptr<const Repositories> repositories,
                 std::shared_ptr<const DrillSettings> settings)
      : repositories_(std::move(repositories)), settings_(std::move(settings)) {}
  [[nodiscard]] std::string_view kind() const override { return api::kBackupDrillKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return api::backup_parameter_names<api::BackupCheckParameters>();
  }
  [[nodiscard]] bool needs_own_directories() const override { return false; }

  net::awaitable<Result<void>> look(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(parse(record));
    co_return configured();
  }

 protected:
  [[nodiscard]] node::JobRunner& runner(const LocalNode& node) const override {
    return repositories_ ? repositories_->access().jobs : *node.jobs;
  }

  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(
      LocalNode /*node*/, const OperationRecord& record) override {
    VERGER_CO_TRY(auto parameters, parse(record));
    VERGER_CO_RETURN_IF_ERROR(configured());
    co_return std::make_shared<Drill>(repositories_, std::move(parameters));
  }

  net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                   const OperationRecord& /*record*/) override {
    const auto drill = std::dynamic_pointer_cast<Drill>(std::move(job));
    VERGER_CO_RETURN_IF_ERROR(co_await run_paced(node, drill));
    VERGER_FAILPOINT("agent.drill.begun");
    const auto worked = co_await work(node, drill);
    if (!worked && Drill::is_finding(worked.error())) {
      drill->fail(worked.error().message);
    } else if (!worked) {
      static_cast<void>(co_await call(node, [drill] { return drill->place->remove(); }));
      co_return worked;
    }
    VERGER_FAILPOINT("agent.drill.read");
    node.control->report({.phase = "removing the restored database"});
    VERGER_CO_RETURN_IF_ERROR(co_await call(node, [drill] { return drill->place->remove(); }));
    co_return co_await call(node, [drill] { return drill->record(); });
  }

  std::string result_of(const MeteredJob& job) override {
    return api::to_text(dynamic_cast<const Drill&>(job).drilled);
  }

 private:
  static Result<api::BackupCheckParameters> parse(const OperationRecord& record) {
    VERGER_TRY(auto parameters, api::parse_backup_parameters<api::BackupCheckParameters>(
                                    record.request.parameters_json));
    if (parameters.repository.empty() || !backup::is_generation_id(parameters.generation)) {
      return Error{Errc::kInvalidArgument,
                   "parameters of backup_drill: \"repository\", and \"generation\" with the id of "
                   "a backup are needed"};
    }
    return parameters;
  }

  [[nodiscard]] Result<void> configured() const {
    if (!repositories_) {
      return Error{Errc::kUnsupported, "the agent has no repositories (--backup-repositories)"};
    }
    if (!settings_ || repositories_->access().scratch.empty()) {
      return Error{Errc::kUnsupported,
                   "the agent has no directory to restore to for drills (--backup-scratch)"};
    }
    return {};
  }

  net::awaitable<Result<void>> call(LocalNode node, std::function<Result<void>()> what) const {
    co_return co_await runner(node).run(std::make_shared<Call>(std::move(what)),
                                        std::make_shared<node::StopFlag>());
  }

  net::awaitable<void> let_go(LocalNode node, std::shared_ptr<MeteredJob> job) const {
    static_cast<void>(co_await runner(node).run(last_reference_to(std::move(job)),
                                                std::make_shared<node::StopFlag>()));
  }

  net::awaitable<Result<void>> work(LocalNode node, std::shared_ptr<Drill> drill) const {
    const auto& access = repositories_->access();
    const auto began = access.clock.monotonic();
    VERGER_CO_RETURN_IF_ERROR(co_await restore(node, drill));
    drill->drilled.restore_ms = in_ms(access.clock.monotonic() - began);
    VERGER_FAILPOINT("agent.drill.restored");
    if (drill->needs_digests_before()) {
      VERGER_CO_TRY(drill->before, co_await read(node, drill, DrillReading::Scope::kDigests));
    }
    node.control->report({.phase = "starting a server on the restored database"});
    const auto starts = access.clock.monotonic();
    VERGER_CO_RETURN_IF_ERROR(co_await start_and_stop(node, drill, starts));
    if (!drill->drilled.summary.empty()) {
      co_return Result<void>();  // it did not start
    }
    VERGER_FAILPOINT("agent.drill.stopped");
    const auto reads = access.clock.monotonic();
    VERGER_CO_TRY(const auto found, co_await read(node, drill, DrillReading::Scope::kEverything));
    drill->drilled.read_ms = in_ms(access.clock.monotonic() - reads);
    drill->compare(found);
    co_return Result<void>();
  }

  net::awaitable<Result<void>> restore(LocalNode node, std::shared_ptr<Drill> drill) const {
    const auto& access = repositories_->access();
    constexpr std::size_t kThreads = 2;
    auto restore = std::make_shared<RestoreWork>(
        repositories_, drill->parameters(), drill->drilled.generation,
        RestoreWork::Target{.directory = drill->place->database(), .threads = kThreads},
        access.files);
    restore->allow_finish({});
    auto restored = co_await run_paced(node, restore);
    co_await let_go(node, std::exchange(restore, nullptr));
    co_return restored;
  }

  /// A server that does not start is a finding; kCancelled is not.
  net::awaitable<Result<void>> start_and_stop(LocalNode node, std::shared_ptr<Drill> drill,
                                              Monotonic starts) const {
    const auto& access = repositories_->access();
    auto server = co_await DrillServer::start({.settings = *settings_,
                                               .files = access.files,
                                               .timers = node.timers,
                                               .clock = access.clock},
                                              drill->place.get(), node.control->stop_flag());
    drill->drilled.start_ms = in_ms(access.clock.monotonic() - starts);
    if (!server) {
      if (server.error().code != Errc::kUnavailable) {
        co_return server.error();
      }
      drill->fail(server.error().message);
      co_return Result<void>();
    }
    VERGER_FAILPOINT("agent.drill.started");
    const auto writer = (*server)->writer_position();
    co_await (*server)->stop();
    if (writer < drill->drilled.end_position) {
      drill->fail(
          fmt::format("the server on the restored database is at position {} only, and the "
                      "backup ends at {}",
                      writer, drill->drilled.end_position));
    }
    co_return Result<void>();
  }

  net::awaitable<Result<DrillFindings>> read(LocalNode node, std::shared_ptr<Drill> drill,
                                             DrillReading::Scope scope) const {
    const auto& access = repositories_->access();
    auto reading =
        std::make_shared<DrillReading>(drill->place->database(), drill->source->manifest, scope,
                                       DrillReading::Environment{.files = access.files,
                                                                 .clock = access.clock,
                                                                 .random = access.random,
                                                                 .log = access.log});
    const auto worked = co_await run_paced(node, reading);
    const auto findings = reading->findings();
    co_await let_go(node, std::exchange(reading, nullptr));
    VERGER_CO_RETURN_IF_ERROR(worked);
    co_return findings;
  }

  std::shared_ptr<const Repositories> repositories_;
  std::shared_ptr<const DrillSettings> settings_;
};

}  // namespace

std::unique_ptr<Operation> make_drill_operation(std::shared_ptr<const Repositories> repositories,
                                                std::shared_ptr<const DrillSettings> settings) {
  return std::make_unique<DrillOperation>(std::move(repositories), std::move(settings));
}

}  // namespace verger::agent
