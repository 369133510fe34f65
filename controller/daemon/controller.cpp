#include "controller/daemon/controller.h"

#include <fmt/format.h>
#include <optional>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "controller/api/api.h"
#include "controller/cluster/certificate_alerts.h"
#include "controller/cluster/credentials.h"
#include "controller/cluster/observer.h"
#include "controller/cluster/registry.h"
#include "controller/cluster/survey.h"
#include "controller/daemon/event_log.h"
#include "controller/executor/step_kind.h"
#include "controller/journal/sealed_snapshots.h"
#include "controller/journal/sqlite_journal.h"
#include "controller/journal/timed_journal.h"
#include "controller/operations/operation_modules.h"
#include "controller/scheduler/scheduler.h"
#include "engine/base/directories.h"
#include "nodeagent/http/task_count.h"

namespace verger::controller {

/// Declared in the order in which they stand on each other; destroyed the other way round.
struct Controller::Parts {
  ControllerEnvironment environment;
  CredentialDirectory credentials;
  std::unique_ptr<TimedJournal> journal;
  ControllerEpoch epoch;
  Registry registry;
  Network network;
  StepKinds kinds;
  PolicyBook book;
  Executor executor;
  Notifier notifier;
  Scheduler scheduler;
  Access access;
  AgentBook agents;
  CertificateAlerts certificate_alerts;
  Retention retention;
  Api api;
  std::optional<Survey> survey;
  std::chrono::minutes compact_every;
  http::TaskCount compacting;
  net::cancellation_signal stop_compacting;
  std::unique_ptr<EventLog> event_log;

  /// What operations are given, with what only these parts know.
  std::shared_ptr<const OperationSettings> settings_of(const ControllerEnvironment& from) {
    auto settings = std::make_shared<OperationSettings>(from.operations);
    settings->kept_by_runs = [this](std::string_view cluster) {
      return kept_by_runs_of(executor, cluster);
    };
    return settings;
  }

  Parts(ControllerOptions options, const ControllerEnvironment& from,
        std::unique_ptr<TimedJournal> opened, ControllerEpoch taken)
      : environment(from),
        credentials(from.files, options.credentials_directory, from.log, from.clock),
        journal(std::move(opened)),
        epoch(taken),
        registry(*journal, epoch),
        network{.client = from.client,
                .timers = from.timers,
                .clock = from.clock,
                .credentials = credentials,
                .log = from.log,
                .services = from.services,
                .request_deadline = options.request_deadline,
                .served_certificate = from.served_certificate,
                .served_chain = from.served_chain,
                .roots_of = from.roots_of,
                .clients_of = from.clients_of},
        kinds(standard_step_kinds(settings_of(from))),
        book(*journal, epoch, options.policy),
        executor({.executor = from.executor,
                  .journal = *journal,
                  .registry = registry,
                  .network = network,
                  .random = from.random,
                  .kinds = kinds,
                  .epoch = epoch,
                  .options = options.executor,
                  .hours = &book}),
        notifier({.executor = from.executor,
                  .journal = *journal,
                  .runs = executor,
                  .book = book,
                  .network = network,
                  .run_command = from.run_command,
                  .registry = &registry,
                  .epoch = epoch,
                  .send_mail = from.send_mail}),
        scheduler({.executor = from.executor,
                   .journal = *journal,
                   .registry = registry,
                   .book = book,
                   .runs = executor,
                   .network = network,
                   .epoch = epoch,
                   .tick = options.scheduler_tick,
                   .notifier = &notifier}),
        access(*journal, from.random, epoch, from.clock, network.log, from.bootstrap),
        agents({.journal = *journal,
                .epoch = epoch,
                .random = from.random,
                .clock = from.clock,
                .authority = from.authority,
                .certificate_lifetime = options.agent_certificate_lifetime}),
        certificate_alerts(*journal, epoch, network.log),
        retention({.journal = *journal,
                   .runs = executor,
                   .clock = from.clock,
                   .log = network.log,
                   .epoch = epoch,
                   .files = from.files,
                   .archive = options.data_directory / "archive",
                   .rules = options.retention}),
        api({.executor = executor,
             .registry = registry,
             .journal = *journal,
             .observer = executor.observer(),
             .network = network,
             .timers = from.timers,
             .epoch = epoch,
             .policy = options.policy,
             .book = book,
             .scheduler = scheduler,
             .clock = from.clock,
             .access = access,
             .log = network.log,
             .agents = &agents,
             .admit_command = from.admit_command,
             .shared_journal = options.executor.shared_journal,
             .commits = &journal->times(),
             .sends_mail = static_cast<bool>(from.send_mail),
             .notifier = &notifier,
             .retention = &retention,
             .reached_at = options.reached_at,
             .api_of_agents_authority = options.api_of_agents_authority}),
        compact_every(options.compact_every),
        compacting(from.executor) {
    if (options.survey_every.count() > 0) {
      survey.emplace(SurveyParts{.executor = from.executor,
                                 .registry = registry,
                                 .observer = executor.observer(),
                                 .timers = from.timers,
                                 .log = network.log,
                                 .every = options.survey_every,
                                 .seen = [this](const planner::ClusterSnapshot& snapshot) {
                                   certificate_alerts.look(snapshot);
                                 }});
    }
  }
};

Controller::Controller(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Controller::~Controller() = default;

Result<std::unique_ptr<Controller>> Controller::open(ControllerOptions options,
                                                     ControllerEnvironment environment) {
  VERGER_RETURN_IF_ERROR(make_directories_durably(environment.files, options.data_directory));
  VERGER_TRY(auto opened, environment.open_journal
                              ? environment.open_journal()
                              : open_sqlite_journal_above(
                                    environment.files, options.data_directory / "journal.db",
                                    environment.clock, ControllerEpoch(options.epoch_above)));
  auto journal = std::make_unique<TimedJournal>(
      std::make_unique<SealedSnapshots>(std::move(opened), environment.log), environment.clock);
  const auto owner = environment.random.uuid().to_string();
  VERGER_TRY(auto epoch, journal->begin_epoch(owner));
  auto parts = std::make_unique<Parts>(std::move(options), environment, std::move(journal), epoch);
  VERGER_RETURN_IF_ERROR(parts->registry.load());
  VERGER_RETURN_IF_ERROR(parts->book.load());
  VERGER_RETURN_IF_ERROR(parts->scheduler.load());
  VERGER_RETURN_IF_ERROR(parts->access.load());
  VERGER_RETURN_IF_ERROR(parts->agents.load());
  VERGER_RETURN_IF_ERROR(parts->certificate_alerts.load());
  VERGER_RETURN_IF_ERROR(parts->notifier.load());
  return std::unique_ptr<Controller>(new Controller(std::move(parts)));
}

Result<void> Controller::start() {
  if (parts_->environment.log_events) {
    VERGER_TRY(parts_->event_log,
               EventLog::open({.journal = *parts_->journal,
                               .log = parts_->network.log,
                               .cluster_of = [this](const std::string& run) {
                                 const auto found = parts_->executor.find_run(run);
                                 return found ? (*found)->cluster : std::string();
                               }}));
  }
  VERGER_RETURN_IF_ERROR(parts_->executor.start());
  parts_->scheduler.start();
  if (parts_->survey) {
    parts_->survey->start();
  }
  if (parts_->compact_every.count() > 0) {
    parts_->compacting.begin();
    net::co_spawn(parts_->environment.executor, compact_now_and_then(*parts_),
                  net::bind_cancellation_slot(
                      parts_->stop_compacting.slot(),
                      [this](const std::exception_ptr&) { parts_->compacting.end(); }));
  }
  return {};
}

net::awaitable<void> Controller::compact_now_and_then(Parts& parts) {
  for (;;) {
    co_await parts.network.timers.sleep_for(parts.compact_every);
    const auto done = co_await parts.retention.compact("vergerd", "");
    if (!done) {
      parts.network.log.warning("the journal was not compacted; it will be tried again",
                                {{"reason", done.error().message}});
    } else if (done->events() > 0) {
      parts.network.log.info("the journal was compacted",
                             {{"removed", std::to_string(done->events())},
                              {"events", std::to_string(done->after.events)},
                              {"bytes", std::to_string(done->after.bytes)},
                              {"bytes_in_use", std::to_string(done->after.bytes_in_use)}});
    }
  }
}

net::awaitable<void> Controller::stop_survey(Parts& parts) {
  if (parts.survey) {
    co_await parts.survey->stop();
  }
}

net::awaitable<void> Controller::stop() {
  using net::experimental::awaitable_operators::operator&&;
  parts_->stop_compacting.emit(net::cancellation_type::terminal);
  co_await (parts_->scheduler.stop() && parts_->executor.stop() &&
            parts_->compacting.wait_for_all() && stop_survey(*parts_));
}

bool Controller::knows(const http::Request& head) const {
  return parts_->access.authenticate(head).has_value();
}
http::Handler Controller::handler() { return parts_->api.handler(); }
Executor& Controller::executor() { return parts_->executor; }
Registry& Controller::registry() { return parts_->registry; }
Journal& Controller::journal() { return *parts_->journal; }
AgentBook& Controller::agents() { return parts_->agents; }
ControllerEpoch Controller::epoch() const { return parts_->epoch; }

}  // namespace verger::controller
