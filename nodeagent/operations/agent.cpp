#include "nodeagent/operations/agent.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/base/directories.h"
#include "engine/base/failpoint.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/http/router.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/operations/answers.h"
#include "nodeagent/operations/digests.h"
#include "nodeagent/operations/facts.h"
#include "nodeagent/operations/last_look.h"
#include "nodeagent/operations/permits.h"

namespace verger::agent {
namespace {

using nlohmann::json;

constexpr int kEndedTold = 20;
constexpr std::chrono::milliseconds kStopLook{20};

/// Says of parameters that the kind does not have that they are not known: an agent that passed
/// over a misspelt one would do something else than was asked.
Result<void> check_parameters(const Operation& kind, const std::string& text) {
  const auto parameters = json::parse(text, nullptr, false);
  if (!parameters.is_object()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("parameters of {}: not a JSON object", kind.kind())};
  }
  const auto known = kind.parameters();
  for (const auto& [name, value] : parameters.items()) {
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

std::optional<client::Credentials> credentials_of(const AgentOptions& options) {
  if (options.user.empty()) {
    return std::nullopt;
  }
  return client::Credentials{.user = options.user, .password = options.password};
}

}  // namespace

class Agent::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(AgentOptions options, AgentEnvironment environment,
       std::unique_ptr<OperationJournal> journal)
      : options_(std::move(options)),
        environment_(std::move(environment)),
        journal_(std::move(journal)),
        permits_(environment_.clock),
        tasks_(environment_.executor, environment_.log, "agent"),
        digests_(environment_.jobs, tasks_),
        client_(environment_.client, options_.node, credentials_of(options_), {},
                options_.request_deadline) {
    add_kind(make_scavenge_operation());
    add_kind(make_resign_operation());
    add_kind(make_priority_operation());
    add_kind(make_reload_operation());
    add_kind(make_offline_scavenge_operation());
    add_kind(make_scavenge_point_operation());
    add_kind(make_start_service_operation());
    add_routes();
  }

  void start() {
    auto unfinished = journal_->unfinished();
    if (!unfinished) {
      environment_.log.error("the agent's journal cannot be read",
                             {{"error", unfinished.error().message}});
      return;
    }
    for (auto& record : *unfinished) {
      resume(std::make_shared<OperationRecord>(std::move(record)));
    }
  }

  net::awaitable<void> stop() {
    stopping_ = true;
    digests_.stop();
    // A copy: act() may return while another one is asked to.
    for (const auto& record : std::set<Record>(torn_by_a_stop_)) {
      environment_.log.info("waiting for an operation before the agent ends",
                            {{"operation", record->request.id}, {"kind", record->request.kind}});
      static_cast<void>(co_await kinds_.at(record->request.kind)->cancel(local_node(), *record));
    }
    for (std::chrono::milliseconds waited{0};
         !torn_by_a_stop_.empty() && waited < options_.stop_limit; waited += kStopLook) {
      co_await environment_.timers.sleep_for(kStopLook);
    }
    for (const auto& record : torn_by_a_stop_) {
      environment_.log.error(
          "the agent ends in the middle of an operation; the server may be stopped until the "
          "agent is started again",
          {{"operation", record->request.id}, {"kind", record->request.kind}});
    }
    co_await tasks_.stop(std::chrono::milliseconds(0));
  }

  /// As a crash: whatever resumes after this ends at its next step, and neither asks the
  /// environment nor looks into the journal.
  void abandon() {
    stopping_ = true;
    gone_ = true;
    digests_.stop();
    tasks_.cancel();
    journal_.reset();  // the next agent may open it
  }

  [[nodiscard]] bool gone() const { return gone_; }

  net::awaitable<http::Response> answer(http::Request request) {
    return router_.answer(std::move(request));
  }

 private:
  using Record = std::shared_ptr<OperationRecord>;

  void add_kind(std::unique_ptr<Operation> kind) {
    const std::string name(kind->kind());
    kinds_[name] = std::move(kind);
  }

  void add_routes() {
    const auto add = [this](std::string method, std::string_view pattern, auto member) {
      router_.add(std::move(method), pattern,
                  [this, member](http::RoutedRequest request) -> net::awaitable<http::Response> {
                    return (this->*member)(std::move(request));
                  });
    };
    add("GET", "/agent/v1/facts", &Impl::get_facts);
    add("POST", "/agent/v1/permits", &Impl::post_permit);
    add("POST", "/agent/v1/operations", &Impl::post_operation);
    add("GET", "/agent/v1/operations/{id}", &Impl::get_operation);
    add("POST", "/agent/v1/operations/{id}/cancel", &Impl::cancel_operation);
    add("GET", "/agent/v1/digest", &Impl::get_digest);
    router_.no_path = [](const http::Request& request) {
      return problem(404, "not_found",
                     fmt::format("{} {}: no such route", request.method, request.target));
    };
  }

  LocalNode local_node() {
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
            .offline = environment_.offline};
  }

  Result<void> permitted_now(const api::OperationRequest& request) const {
#ifdef VERGER_FAILPOINTS
    if (options_.ignore_permits) {
      return {};
    }
#endif
    return permits_.check(request);
  }

  // --- Routes

  net::awaitable<http::Response> get_facts(http::RoutedRequest /*request*/) {
    auto facts = collect_facts(environment_.inspection(), environment_.files,
                               options_.journal.parent_path(), environment_.clock);
    facts.highest_controller_epoch = journal_->highest_epoch();
    auto unfinished = journal_->unfinished();
    auto ended = journal_->newest_ended(kEndedTold);
    if (!unfinished || !ended) {
      co_return problem_of(!unfinished ? unfinished.error() : ended.error());
    }
    for (const auto* records : {&*unfinished, &*ended}) {
      for (const auto& record : *records) {
        facts.operations.push_back(record.status);
      }
    }
    auto body = api::to_json(facts);
    body["serviceControl"] = environment_.offline != nullptr && environment_.offline->configured();
    if (environment_.complete_facts) {
      environment_.complete_facts(body);
    }
    co_return json_answer(200, body);
  }

  net::awaitable<http::Response> post_permit(http::RoutedRequest request) {
    const auto permit = api::parse_permit(request.request.body);
    if (!permit) {
      co_return problem_of(permit.error());
    }
    if (auto raised = journal_->raise_epoch(permit->controller_epoch); !raised) {
      co_return problem_of(raised.error());
    }
    permits_.grant(*permit);
    http::Response response;
    response.status = 204;
    co_return response;
  }

  net::awaitable<http::Response> post_operation(http::RoutedRequest request) {
    const auto asked = api::parse_operation_request(request.request.body);
    if (!asked) {
      co_return problem_of(asked.error());
    }
    if (!kinds_.contains(asked->kind)) {
      co_return problem(
          400, "bad_request",
          fmt::format("operation kind \"{}\" is not known to this agent", asked->kind));
    }
    // A known id is answered whoever asks: it is a question, nothing is begun by it.
    const auto known = journal_->find(asked->id);
    if (!known) {
      co_return problem_of(known.error());
    }
    if (!*known) {
      if (auto raised = journal_->raise_epoch(asked->controller_epoch); !raised) {
        co_return problem_of(raised.error());
      }
      if (auto permitted = permitted_now(*asked); !permitted) {
        co_return problem_of(permitted.error());
      }
      if (auto checked = check_parameters(*kinds_.at(asked->kind), asked->parameters_json);
          !checked) {
        co_return problem_of(checked.error());
      }
      if (stopping_) {
        co_return problem(503, "unavailable", "the agent is stopping");
      }
    }
    const auto accepted = journal_->accept(*asked);
    if (!accepted) {
      co_return problem_of(accepted.error());
    }
    if (accepted->is_new) {
      auto record = std::make_shared<OperationRecord>(accepted->record);
      running_[record->request.id] = record;
      tasks_.spawn(begin(shared_from_this(), std::move(record)));
    }
    co_return json_answer(accepted->is_new ? 202 : 200, api::to_json(accepted->record.status));
  }

  net::awaitable<http::Response> get_operation(http::RoutedRequest request) {
    const std::string id(request.parameter("id"));
    const auto found = journal_->find(id);
    if (!found) {
      co_return problem_of(found.error());
    }
    if (!*found) {
      co_return problem(404, "not_found",
                        fmt::format("operation {} never arrived at this agent", id));
    }
    co_return json_answer(200, api::to_json((*found)->status));
  }

  net::awaitable<http::Response> cancel_operation(http::RoutedRequest request) {
    const std::string id(request.parameter("id"));
    const auto found = running_.find(id);
    if (found == running_.end()) {
      const auto stored = journal_->find(id);
      if (!stored) {
        co_return problem_of(stored.error());
      }
      co_return *stored
          ? json_answer(200, api::to_json((*stored)->status))
          : problem(404, "not_found", fmt::format("operation {} never arrived at this agent", id));
    }
    const auto record = found->second;
    const bool asked = co_await kinds_.at(record->request.kind)->cancel(local_node(), *record);
    if (!asked) {
      co_return problem(
          409, "conflict",
          fmt::format("a {} cannot be stopped; it ends by itself", record->request.kind));
    }
    co_return json_answer(202, api::to_json(record->status));
  }

  net::awaitable<http::Response> get_digest(http::RoutedRequest request) {
    std::int64_t point = -1;
    const auto text = request.target.parameter("point").value_or("");
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), point);
    if (error != std::errc() || end != text.data() + text.size() || point < 0) {
      co_return problem(400, "bad_request", "point must be the number of a scavenge point");
    }
    auto* node = environment_.inspection();
    if (node == nullptr) {
      co_return problem(503, "unavailable", "the node is stopped; a digest needs it running");
    }
    const auto digest = digests_.ask(*node, point);
    if (!digest) {
      co_return problem_of(digest.error());
    }
    co_return *digest ? json_answer(200, api::to_json(**digest))
                      : json_answer(202, {{"state", "computing"}});
  }

  // --- The life of one operation

  /// False: the journal cannot be written now.
  bool store(const OperationRecord& record) {
    if (auto stored = journal_->update(record); !stored) {
      environment_.log.error("the agent's journal cannot be written",
                             {{"operation", record.request.id}, {"error", stored.error().message}});
      return false;
    }
    return true;
  }

  void finish(const Record& record, api::OperationState state, std::string code, std::string text) {
    record->status.state = state;
    record->status.finished_at = format_ticks(environment_.clock.now());
    if (state == api::OperationState::kDone) {
      record->status.result_json = std::move(text);
    } else {
      record->status.error_code = std::move(code);
      record->status.error = std::move(text);
    }
    if (!store_outcome(*record)) {
      running_[record->request.id] = record;
      tasks_.spawn(store_later(shared_from_this(), record));
    }
  }

  bool store_outcome(const OperationRecord& record) {
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
    return true;
  }

  /// An outcome that is known but not stored (a full disk) is one that nobody may be told: whoever
  /// asks would wait for ever if it were dropped.
  static net::awaitable<void> store_later(std::shared_ptr<Impl> self, Record record) {
    do {
      co_await self->environment_.timers.sleep_for(self->options_.poll_interval);
    } while (!self->stopping_ && !self->store_outcome(*record));
  }

  /// After a restart: what was only accepted was certainly not sent; the rest is looked at.
  void resume(Record record) {
    if (record->status.state == api::OperationState::kAccepted) {
      finish(record, api::OperationState::kFailed, "not_happened",
             "the agent was restarted before it acted; nothing was done");
      return;
    }
    running_[record->request.id] = record;
    tasks_.spawn(watch(shared_from_this(), std::move(record), /*stored=*/true));
  }

  static net::awaitable<void> begin(std::shared_ptr<Impl> self, Record record) {
    auto& kind = *self->kinds_.at(record->request.kind);
    VERGER_FAILPOINT("agent.operation.accepted");
    if (const auto other = self->in_the_way(*record); !other.empty()) {
      self->finish(record, api::OperationState::kFailed, "gate_closed",
                   fmt::format("operation {} works on the node's files", other));
      co_return;
    }
    if (const auto closed = co_await closed_gates(self->local_node(), self->environment_.files,
                                                  record->request.parameters_json);
        !self->gone_ && !closed.empty()) {
      self->finish(record, api::OperationState::kFailed, "gate_closed", closed);
      co_return;
    }
    if (self->gone_) {
      co_return;
    }
    if (auto looked = co_await self->last_look(kind, record); !self->gone_ && !looked) {
      self->finish(record, api::OperationState::kFailed,
                   std::string(to_string(looked.error().code)), looked.error().message);
      co_return;
    }
    if (self->gone_) {
      co_return;
    }
    if (self->stopping_) {
      self->finish(record, api::OperationState::kFailed, "not_happened",
                   "the agent was stopped before it acted; nothing was done");
      co_return;
    }
    // From here on the request may have been sent: this state has to be on disk before it is.
    record->status.state = api::OperationState::kActing;
    if (!self->store(*record)) {
      self->finish(record, api::OperationState::kFailed, "not_happened",
                   "the agent could not write its journal before it acted; nothing was done");
      co_return;
    }
    VERGER_FAILPOINT("agent.operation.before-act");
    const auto acted = co_await act(self, kind, record);
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

  static net::awaitable<Result<void>> act(std::shared_ptr<Impl> self, Operation& kind,
                                          Record record) {
    struct Entry {
      std::set<Record>& set;
      const Record& record;
      ~Entry() { set.erase(record); }
    };
    std::optional<Entry> entry;
    if (kind.torn_by_a_stop()) {
      self->torn_by_a_stop_.insert(record);
      entry.emplace(self->torn_by_a_stop_, record);
    }
    co_return co_await kind.act(self->local_node(), *record);
  }

  /// Id of another operation that works on the files; empty: there is none, or this one does not.
  [[nodiscard]] std::string in_the_way(const OperationRecord& record) const {
    if (kinds_.at(record.request.kind)->works_on_files()) {
      for (const auto& [id, other] : running_) {
        if (id != record.request.id && kinds_.contains(other->request.kind) &&
            kinds_.at(other->request.kind)->works_on_files()) {
          return id;
        }
      }
    }
    return {};
  }

  net::awaitable<Result<void>> last_look(Operation& kind, Record record) {
    const auto& expected = record->request.expected_instance_id;
    auto* node = environment_.inspection();
    if (!expected.empty() && node != nullptr && node->instance_id() != expected) {
      co_return Error{Errc::kConflict,
                      fmt::format("the node is instance {}, not {}: it was restarted or replaced "
                                  "since the plan looked at it",
                                  node->instance_id(), expected)};
    }
    if (auto permitted = permitted_now(record->request); !permitted) {
      co_return permitted.error();
    }
    co_return co_await kind.look(local_node(), *record);
  }

  /// `stored`: the record on disk is as in memory.
  static net::awaitable<void> watch(std::shared_ptr<Impl> self, Record record, bool stored) {
    auto& kind = *self->kinds_.at(record->request.kind);
    while (!self->stopping_) {
      const auto memory = record->memory_json;
      const auto seen = co_await kind.observe(self->local_node(), *record);
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
          const auto state = seen.kind == Observation::Kind::kRunning
                                 ? api::OperationState::kActing
                                 : api::OperationState::kUnknown;
          if (!stored || state != record->status.state || memory != record->memory_json) {
            record->status.state = state;
            record->status.error = seen.text;
            stored = self->store(*record);
          }
          break;
        }
      }
      co_await self->environment_.timers.sleep_for(self->options_.poll_interval);
    }
  }

  AgentOptions options_;
  AgentEnvironment environment_;
  std::unique_ptr<OperationJournal> journal_;
  Permits permits_;
  http::TaskGroup tasks_;
  Digests digests_;
  client::NodeClient client_;
  std::map<std::string, std::unique_ptr<Operation>> kinds_;
  std::map<std::string, Record> running_;
  /// Operations within an act() that must return before the agent ends.
  std::set<Record> torn_by_a_stop_;
  http::Router router_;
  bool stopping_ = false;
  bool gone_ = false;
};

Agent::Agent(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agent::~Agent() { impl_->abandon(); }

Result<std::unique_ptr<Agent>> Agent::open(AgentOptions options, AgentEnvironment environment) {
  VERGER_CHECK(make_directories_durably(environment.files, options.journal.parent_path()));
  VERGER_TRY(auto journal,
             environment.open_journal
                 ? environment.open_journal()
                 : OperationJournal::open(environment.files, options.journal, environment.clock));
  return std::unique_ptr<Agent>(new Agent(
      std::make_shared<Impl>(std::move(options), std::move(environment), std::move(journal))));
}

void Agent::start() { impl_->start(); }
net::awaitable<void> Agent::stop() { return impl_->stop(); }

http::Handler Agent::handler() {
  return [weak = std::weak_ptr(impl_)](http::Request request) -> net::awaitable<http::Response> {
    const auto self = weak.lock();
    if (!self || self->gone()) {
      co_return problem(503, "unavailable", "the agent has stopped");
    }
    co_return co_await self->answer(std::move(request));
  };
}

}  // namespace verger::agent
