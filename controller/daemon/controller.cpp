#include "controller/daemon/controller.h"

#include <fmt/format.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "controller/api/api.h"
#include "controller/cluster/credentials.h"
#include "controller/cluster/observer.h"
#include "controller/cluster/registry.h"
#include "controller/daemon/event_log.h"
#include "controller/executor/step_kind.h"
#include "controller/journal/timed_journal.h"
#include "controller/scheduler/scheduler.h"
#include "engine/base/directories.h"

namespace verger::controller {

/// Declared in the order in which they stand on each other; destroyed the other way round.
struct Controller::Parts {
  ControllerEnvironment environment;
  CredentialDirectory credentials;
  std::unique_ptr<TimedJournal> journal;
  ControllerEpoch epoch;
  Registry registry;
  Network network;
  Observer observer;
  StepKinds kinds;
  PolicyBook book;
  Executor executor;
  Notifier notifier;
  Scheduler scheduler;
  Access access;
  AgentBook agents;
  Api api;
  std::unique_ptr<EventLog> event_log;

  Parts(ControllerOptions options, const ControllerEnvironment& from,
        std::unique_ptr<TimedJournal> opened, ControllerEpoch taken)
      : environment(from),
        credentials(from.files, options.credentials_directory, from.log),
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
                .roots_of = from.roots_of,
                .clients_of = from.clients_of},
        observer(network),
        kinds(standard_step_kinds()),
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
                  .run_command = from.run_command}),
        scheduler({.executor = from.executor,
                   .journal = *journal,
                   .registry = registry,
                   .book = book,
                   .runs = executor,
                   .network = network,
                   .epoch = epoch,
                   .tick = options.scheduler_tick,
                   .notifier = &notifier}),
        access(*journal, from.random, epoch, network.log),
        agents({.journal = *journal,
                .epoch = epoch,
                .random = from.random,
                .clock = from.clock,
                .authority = from.authority,
                .certificate_lifetime = options.agent_certificate_lifetime}),
        api({.executor = executor,
             .registry = registry,
             .journal = *journal,
             .observer = observer,
             .timers = from.timers,
             .epoch = epoch,
             .policy = options.policy,
             .book = book,
             .scheduler = scheduler,
             .clock = from.clock,
             .access = access,
             .log = network.log,
             .agents = &agents,
             .shared_journal = options.executor.shared_journal,
             .commits = &journal->times(),
             .notifications = &notifier.counts()}) {}
};

Controller::Controller(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Controller::~Controller() = default;

Result<std::unique_ptr<Controller>> Controller::open(ControllerOptions options,
                                                     ControllerEnvironment environment) {
  VERGER_CHECK(make_directories_durably(environment.files, options.data_directory));
  VERGER_TRY(auto opened,
             environment.open_journal
                 ? environment.open_journal()
                 : open_sqlite_journal(environment.files, options.data_directory / "journal.db",
                                       environment.clock));
  auto journal = std::make_unique<TimedJournal>(std::move(opened), environment.clock);
  const auto owner = environment.random.uuid().to_string();
  VERGER_TRY(auto epoch, journal->begin_epoch(owner));
  while (epoch.value() <= options.epoch_above) {
    VERGER_TRY(epoch, journal->begin_epoch(owner));
  }
  auto parts = std::make_unique<Parts>(std::move(options), environment, std::move(journal), epoch);
  VERGER_CHECK(parts->registry.load());
  VERGER_CHECK(parts->book.load());
  VERGER_CHECK(parts->scheduler.load());
  VERGER_CHECK(parts->access.load());
  VERGER_CHECK(parts->agents.load());
  VERGER_CHECK(parts->notifier.load());
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
  VERGER_CHECK(parts_->executor.start());
  parts_->scheduler.start();
  return {};
}

net::awaitable<void> Controller::stop() {
  using net::experimental::awaitable_operators::operator&&;
  co_await (parts_->scheduler.stop() && parts_->executor.stop());
}

http::Handler Controller::handler() { return parts_->api.handler(); }
Executor& Controller::executor() { return parts_->executor; }
Registry& Controller::registry() { return parts_->registry; }
Journal& Controller::journal() { return *parts_->journal; }
AgentBook& Controller::agents() { return parts_->agents; }
ControllerEpoch Controller::epoch() const { return parts_->epoch; }

}  // namespace verger::controller
