#include "nodeagent/operations/detail/operation_runner.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/failpoint.h"
#include "nodeagent/api/json_view.h"
#include "nodeagent/operations/backup/backup_operations.h"
#include "nodeagent/operations/certificates/certificate_operations.h"
#include "nodeagent/operations/drill/drill_operation.h"
#include "nodeagent/operations/heal/heal_filter_operation.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/redaction/redaction_operations.h"
#include "nodeagent/operations/resize/size_operations.h"
#include "nodeagent/operations/restore/restore_operations.h"
#include "nodeagent/operations/scavenge/scavenge_operations.h"
#include "nodeagent/operations/verify/verify_operation.h"

namespace verger::agent {
namespace {

/// While it ends: short, since an operator waits; a look is at what is in memory.
constexpr std::chrono::milliseconds kStopLook{20};
/// Between two looks at what cannot be seen.
constexpr std::chrono::milliseconds kLongestPause{5'000};
/// The code of what was stopped before its end.
constexpr std::string_view kStopped = "stopped";
/// Says of parameters that the kind does not have that they are not known: an agent that passed
/// over a misspelt one would do something else than was requested.
Result<void> check_parameters(const Operation& kind, const std::string& text) {
  const auto parameters = api::JsonDocument::parse(text, "parameters");
  if (!parameters || !parameters->root().is_object()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("parameters of {}: not a JSON object", kind.kind())};
  }
  const auto known = kind.parameters();
  for (const auto& member : parameters->root().names()) {
    const auto name = member.string();
    if (name != kGatesParameter && std::ranges::find(known, name) == known.end()) {
      return Error{
          Errc::kInvalidArgument,
          fmt::format(
              "parameters of {}: \"{}\" is not known; it has: {}", kind.kind(), name,
              known.empty() ? std::string("none") : fmt::format("{}", fmt::join(known, ", ")))};
    }
  }
  return {};
}

}  // namespace

OperationRunner::OperationRunner(AgentOptions options, AgentEnvironment environment,
                                 std::unique_ptr<OperationJournal> journal,
                                 const std::shared_ptr<CertificateDesk>& desk,
                                 const std::shared_ptr<ServerConfigFile>& config)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      journal_(std::move(journal)),
      permits_(environment_.clock),
      tasks_(environment_.executor, environment_.log, "agent"),
      client_(environment_.client, options_.node, options_.credentials, {},
              options_.request_deadline),
      digests_(environment_.jobs, tasks_, environment_.clock, environment_.files,
               options_.journal.parent_path()),
      noted_texts_(std::make_shared<NotedTextStore>(
          options_.journal.parent_path() / "redaction",
          NotedTextStore::Environment{.files = environment_.files,
                                      .clock = environment_.clock,
                                      .log = environment_.log,
                                      .make_private = environment_.make_private})),
      lost_streams_({.jobs = environment_.jobs,
                     .clock = environment_.clock,
                     .timers = environment_.timers,
                     .files = environment_.files,
                     .log = environment_.log}) {
  add_kind(make_resign_operation());
  add_kind(make_priority_operation());
  add_kind(make_reload_operation());
  add_kind(make_start_service_operation());
  add_kind(make_digest_operation(digests_));
  for (auto& kind : scavenge_operations(query_settings_of(
           environment_.client, options_.node, options_.credentials, options_.request_deadline))) {
    add_kind(std::move(kind));
  }
  for (auto& kind : certificate_operations(desk)) {
    add_kind(std::move(kind));
  }
  const auto repositories =
      environment_.backups ? std::make_shared<const Repositories>(environment_.backups) : nullptr;
  for (auto& kind : backup_operations(repositories)) {
    add_kind(std::move(kind));
  }
  for (auto& kind : restore_operations(repositories)) {
    add_kind(std::move(kind));
  }
  for (auto& kind : redaction_operations(noted_texts_)) {
    add_kind(std::move(kind));
  }
  for (auto& kind : size_operations(config)) {
    add_kind(std::move(kind));
  }
  add_kind(make_drill_operation(repositories, environment_.drills));
  add_kind(make_heal_filter_operation());
  add_kind(make_verify_operation(environment_.files, options_.journal.parent_path() / "verify"));
}

void OperationRunner::add_kind(std::unique_ptr<Operation> kind) {
  const std::string name(kind->kind());
  kinds_[name] = std::move(kind);
}

void OperationRunner::start() {
  noted_texts_->collect();
  auto unfinished = journal_->unfinished();
  if (!unfinished) {
    environment_.log.error("the agent's journal cannot be read",
                           {{"error", unfinished.error().message}});
    return;
  }
  for (auto& record : *unfinished) {
    resume(std::make_shared<OperationRecord>(std::move(record)));
  }
  if (environment_.backups) {
    tasks_.spawn(delete_left_snapshots(environment_.backups));
  }
  lost_streams_.start(tasks_, options_.lost_streams_period, environment_.inspection);
}

net::awaitable<void> OperationRunner::stop() {
  stopping_ = true;
  digests_.stop();
  lost_streams_.stop();
  for (const auto& record : blocking_shutdown_) {
    environment_.log.info("waiting for an operation before the agent ends",
                          {{"operation", record->request.id}, {"kind", record->request.kind}});
  }
  for (const auto& [id, control] : controls_) {
    control->suspend();
  }
  for (std::chrono::milliseconds waited{0};
       !blocking_shutdown_.empty() && waited < options_.stop_limit; waited += kStopLook) {
    // Until those operations have ended, or the limit has passed.
    co_await environment_.timers.sleep_for(kStopLook);
  }
  for (const auto& record : blocking_shutdown_) {
    environment_.log.error(
        "the agent ends in the middle of an operation; the server may be stopped until the "
        "agent is started again",
        {{"operation", record->request.id}, {"kind", record->request.kind}});
  }
  co_await tasks_.stop(std::chrono::milliseconds(0));
}

void OperationRunner::abandon() {
  stopping_ = true;
  gone_ = true;
  digests_.stop();
  lost_streams_.stop();
  for (const auto& [id, control] : controls_) {
    control->suspend();
  }
  tasks_.cancel();
  journal_.reset();  // the next agent may open it
}

Result<OperationJournal::Accepted> OperationRunner::submit(const api::OperationRequest& asked) {
  const auto kind = kinds_.find(asked.kind);
  if (kind == kinds_.end()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("operation kind \"{}\" is not known to this agent", asked.kind)};
  }
  VERGER_TRY(const auto known, journal_->find(asked.id));
  if (!known) {
    VERGER_RETURN_IF_ERROR(journal_->raise_epoch(asked.controller_epoch));
    superseded_by(asked.controller_epoch);
    VERGER_RETURN_IF_ERROR(permitted_now(asked));
    VERGER_RETURN_IF_ERROR(check_parameters(*kind->second, asked.parameters_json));
    if (kind->second->has_job()) {
      VERGER_RETURN_IF_ERROR(first_throttle(asked.parameters_json));
    }
    if (stopping_) {
      return Error{Errc::kUnavailable, "the agent is stopping"};
    }
  }
  VERGER_TRY(auto accepted, journal_->accept(asked));
  if (accepted.is_new) {
    auto record = std::make_shared<OperationRecord>(accepted.record);
    add_running(record);
    tasks_.spawn(begin(shared_from_this(), std::move(record)));
  }
  return accepted;
}

RunningOperation OperationRunner::find_running(const std::string& id) const {
  const auto found = running_.find(id);
  return found == running_.end() ? nullptr : found->second;
}

net::awaitable<bool> OperationRunner::cancel(RunningOperation record, bool keep) {
  const bool stops =
      co_await kinds_.at(record->request.kind)->cancel(local_node(record), *record, keep);
  if (stops && keep) {
    given_up_.erase(record->request.id);
  } else if (stops) {
    given_up_.insert(record->request.id);
  }
  co_return stops;
}

LocalNode OperationRunner::local_node(RunningOperation record) {
  auto out = local_node();
  if (const auto control = controls_.find(record->request.id); control != controls_.end()) {
    out.control = control->second;
  }
  out.remember = [weak = weak_from_this(), record = std::move(record)](const std::string& memory) {
    if (const auto self = weak.lock(); self && !self->gone_) {
      record->memory_json = memory;
      static_cast<void>(self->store(*record));
    }
  };
  return out;
}

LocalNode OperationRunner::local_node() {
  return {.client = client_,
          .inspection = [weak = weak_from_this()]() -> node::NodeInspection* {
            const auto self = weak.lock();
            return self && !self->gone_ ? self->environment_.inspection() : nullptr;
          },
          .timers = environment_.timers,
          .clock = environment_.clock,
          .log = environment_.log,
          .served_serial = environment_.served_serial,
          .serial_on_disk = environment_.serial_on_disk,
          .offline = environment_.offline,
          .online = environment_.online,
          .jobs = &environment_.jobs};
}

void OperationRunner::resume(RunningOperation record) {
  if (record->status.state == api::OperationState::kAccepted) {
    finish(record, api::OperationState::kFailed, "not_happened",
           "the agent was restarted before it acted; nothing was done");
    return;
  }
  add_running(record);
  const auto kind = kinds_.find(record->request.kind);
  if (kind != kinds_.end() && kind->second->resumes_by_acting()) {
    tasks_.spawn(carry_out(shared_from_this(), std::move(record)));
  } else {
    tasks_.spawn(watch(shared_from_this(), std::move(record), /*stored=*/true));
  }
}

net::awaitable<void> OperationRunner::begin(Self self, RunningOperation record) {
  VERGER_FAILPOINT("agent.operation.accepted");
  auto hindered = co_await hindrance(self, record);
  if (self->gone_ || record->status.state != api::OperationState::kAccepted) {
    co_return;  // superseded_by() has ended it
  }
  if (!hindered) {
    hindered = self->hindrance_now(*record);
  }
  if (hindered) {
    self->finish(record, api::OperationState::kFailed, hindered->code, hindered->text);
    co_return;
  }
  // From here on the request may have been sent: this state has to be on disk before it is.
  record->status.state = api::OperationState::kActing;
  if (!self->store(*record)) {
    self->finish(record, api::OperationState::kFailed, "not_happened",
                 "the agent could not write its journal before it acted; nothing was done");
    co_return;
  }
  co_await carry_out(self, std::move(record));
}

net::awaitable<void> OperationRunner::carry_out(Self self, RunningOperation record) {
  VERGER_FAILPOINT("agent.operation.before-act");
  const auto acted = co_await act(self, record);
  if (self->gone_) {
    co_return;
  }
  VERGER_FAILPOINT("agent.operation.after-act");
  if (!acted && acted.error().code != Errc::kUnknownOutcome) {
    self->finish(record, api::OperationState::kFailed, std::string(to_string(acted.error().code)),
                 acted.error().message);
    co_return;
  }
  if (!acted) {
    record->status.state = api::OperationState::kUnknown;
    record->status.error = acted.error().message;
  }
  const bool stored = self->store(*record);
  co_await watch(self, std::move(record), stored);
}

void OperationRunner::superseded_by(std::int64_t epoch) {
  // A copy: what ends is taken out.
  for (const auto& [id, record] : std::map<std::string, RunningOperation>(running_)) {
    if (record->status.state == api::OperationState::kAccepted &&
        record->request.controller_epoch < epoch) {
      finish(record, api::OperationState::kFailed, std::string(to_string(Errc::kRefused)),
             fmt::format("a controller with epoch {} took over before the operation of epoch {} "
                         "acted; nothing was done",
                         epoch, record->request.controller_epoch));
    }
  }
}

net::awaitable<Result<void>> OperationRunner::act(Self self, RunningOperation record) {
  struct Entry {
    std::set<RunningOperation>& set;
    const RunningOperation& record;
    ~Entry() { set.erase(record); }
  };
  auto& kind = *self->kinds_.at(record->request.kind);
  std::optional<Entry> entry;
  if (kind.blocks_shutdown()) {
    self->blocking_shutdown_.insert(record);
    entry.emplace(self->blocking_shutdown_, record);
  }
  co_return co_await kind.act(self->local_node(record), *record);
}

net::awaitable<void> OperationRunner::watch(Self self, RunningOperation record, bool stored) {
  auto& kind = *self->kinds_.at(record->request.kind);
  auto pause = self->options_.poll_interval;
  while (!self->stopping_) {
    const auto memory = record->memory_json;
    const auto seen = co_await kind.observe(self->local_node(record), *record);
    if (self->gone_) {
      co_return;
    }
    switch (seen.kind) {
      case Observation::Kind::kDone:
        self->finish(record, api::OperationState::kDone, {}, seen.text);
        co_return;
      case Observation::Kind::kNotHappened:
        self->finish(record, api::OperationState::kFailed, "not_happened", seen.text);
        co_return;
      case Observation::Kind::kFailed:
        self->finish(record, api::OperationState::kFailed, seen.code, seen.text);
        co_return;
      case Observation::Kind::kRunning:
      case Observation::Kind::kUnknown: {
        const auto state = seen.kind == Observation::Kind::kRunning ? api::OperationState::kActing
                                                                    : api::OperationState::kUnknown;
        const bool new_state = state != record->status.state;
        if (new_state && state == api::OperationState::kUnknown) {
          self->environment_.log.warning(
              "what became of an operation cannot be seen yet",
              {{"operation", record->request.id}, {"reason", seen.text}});
        }
        record->status.error = seen.text;
        if (!stored || new_state || memory != record->memory_json) {
          record->status.state = state;
          stored = self->store(*record);
        }
        pause = state == api::OperationState::kUnknown && !new_state
                    ? std::min(2 * pause, std::max(kLongestPause, self->options_.poll_interval))
                    : self->options_.poll_interval;
        break;
      }
    }
    // Until its outcome is known, which has no limit of its own, or the agent stops; doubled while
    // nothing can be seen.
    co_await self->environment_.timers.sleep_for(pause);
  }
}

/// False: the journal cannot be written now.
bool OperationRunner::store(const OperationRecord& record) {
  if (auto stored = journal_->update(record); !stored) {
    environment_.log.error("the agent's journal cannot be written",
                           {{"operation", record.request.id}, {"error", stored.error().message}});
    return false;
  }
  return true;
}

bool OperationRunner::store_outcome(const OperationRecord& record) {
  if (!store(record)) {
    return false;
  }
  VERGER_FAILPOINT("agent.outcome.after-journal");
  environment_.log.info("operation ended",
                        {{"operation", record.request.id},
                         {"kind", record.request.kind},
                         {"state", std::string(api::to_string(record.status.state))},
                         {"error", record.status.error}});
  running_.erase(record.request.id);
  controls_.erase(record.request.id);
  const bool given_up = given_up_.erase(record.request.id) > 0;
  if (record.status.state == api::OperationState::kDone ||
      (record.status.state == api::OperationState::kCancelled && given_up)) {
    forget_texts(*noted_texts_, record);
  }
  return true;
}

/// An outcome that is known but not stored (a full disk) must not be reported: a client that
/// waits for it would wait for ever if it were dropped.
net::awaitable<void> OperationRunner::store_later(Self self, RunningOperation record) {
  do {
    // Until there is room, or the agent stops; the next one sees the outcome again.
    co_await self->environment_.timers.sleep_for(self->options_.poll_interval);
  } while (!self->stopping_ && !self->store_outcome(*record));
}

void OperationRunner::finish(const RunningOperation& record, api::OperationState state,
                             std::string code, std::string text) {
  const auto control = controls_.find(record->request.id);
  record->status.state = state == api::OperationState::kFailed && code == kStopped &&
                                 control != controls_.end() && control->second->cancelled()
                             ? api::OperationState::kCancelled
                             : state;
  record->status.finished_at = format_ticks(environment_.clock.now());
  if (state == api::OperationState::kDone) {
    record->status.result_json = std::move(text);
    record->status.error.clear();  // what was reported while it was under way
    const auto kind = kinds_.find(record->request.kind);
    if (kind != kinds_.end() && kind->second->blocks_shutdown()) {
      lost_streams_.forget();  // its server was restarted, perhaps with a new filter
    }
  } else {
    record->status.error_code = std::move(code);
    record->status.error = std::move(text);
  }
  if (!store_outcome(*record)) {
    if (!running_.contains(record->request.id)) {
      add_running(record);
    }
    tasks_.spawn(store_later(shared_from_this(), record));
  }
}

}  // namespace verger::agent
