#include "nodeagent/operations/agent.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/backup/kept_files.h"
#include "engine/base/directories.h"
#include "engine/base/number_from_text.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/external/online_access.h"
#include "nodeagent/http/router.h"
#include "nodeagent/operations/answers.h"
#include "nodeagent/operations/backup/backup_routes.h"
#include "nodeagent/operations/certificates/certificate_routes.h"
#include "nodeagent/operations/detail/operation_runner.h"
#include "nodeagent/operations/digests.h"
#include "nodeagent/operations/facts.h"
#include "nodeagent/operations/file_store.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/resize/server_config_file.h"
#include "nodeagent/operations/scavenge/estimate_routes.h"

namespace verger::agent {
/// The routes. Their work on operations is the runner's.
class Agent::Impl {
 public:
  Impl(AgentOptions options, AgentEnvironment environment,
       std::unique_ptr<OperationJournal> journal)
      : state_directory_(options.journal.parent_path()),
        environment_(std::move(environment)),
        desk_(make_desk(options)),
        catalogue_(environment_.backups
                       ? std::make_shared<BackupCatalogue>(
                             environment_.backups, environment_.executor, environment_.timers)
                       : nullptr),
        config_(std::make_shared<ServerConfigFile>(environment_.server_config, environment_.files,
                                                   state_directory_)),
        estimates_(std::make_shared<ScavengeEstimates>(
            ScavengeEstimates::Environment{.files = environment_.files,
                                           .clock = environment_.clock,
                                           .jobs = environment_.jobs,
                                           .log = environment_.log,
                                           .inspection = environment_.inspection,
                                           .scratch = state_directory_ / "estimate"})),
        node_(environment_.client, options.node, options.credentials, {}, options.request_deadline),
        runner_(std::make_shared<OperationRunner>(std::move(options), environment_,
                                                  std::move(journal), desk_, config_)) {
    add_routes();
    add_certificate_routes(router_, desk_);
    add_backup_routes(router_, catalogue_);
    add_estimate_routes(router_, estimates_);
  }

  void start() {
    runner_->start();
    // What a crash left half written, and what is too old, goes now; there is most often nothing.
    if (const auto there = environment_.files.exists(file_directory()); there && *there) {
      static_cast<void>(file_store());
    }
  }

  net::awaitable<void> stop() {
    estimates_->stop();
    co_await runner_->stop();
  }

  /// As a crash: a coroutine that resumes after this ends at its next step.
  void abandon() {
    if (desk_) {
      desk_->abandon();
    }
    if (catalogue_) {
      catalogue_->abandon();
    }
    estimates_->stop();
    runner_->abandon();
  }

  [[nodiscard]] bool gone() const { return runner_->gone(); }

  static net::awaitable<http::Response> answer(std::weak_ptr<Impl> weak, http::Request request) {
    const auto self = weak.lock();
    if (!self || self->gone()) {
      co_return problem(503, "unavailable", "the agent has stopped");
    }
    co_return co_await self->router_.answer(std::move(request));
  }

 private:
  /// Null where the agent does not know its node's certificates. It is abandoned with this.
  CertificateDesk::Self make_desk(const AgentOptions& options) {
    if (!environment_.certificates) {
      return nullptr;
    }
    return std::make_shared<CertificateDesk>(
        environment_.certificates,
        CertificateDesk::Environment{
            .node = options.node,
            .files = environment_.files,
            .clock = environment_.clock,
            .jobs = environment_.jobs,
            .directory = state_directory_ / "certificates",
            .stored = [this](std::string_view sha256) -> Result<Bytes> {
              VERGER_TRY(auto* const store, file_store());
              return store->read(sha256);
            },
            .forget = [this](std::string_view sha256,
                             Ticks since) { forget_file(sha256, since); }});
  }

  /// A file that was stored again since is another upload's, too.
  void forget_file(std::string_view sha256, Ticks since) {
    const auto store = file_store();
    if (!store) {
      return;
    }
    const auto found = (*store)->find(sha256);
    const auto stored_at = found ? parse_ticks(found->stored_at) : Result<Ticks>(found.error());
    if (stored_at && *stored_at <= since) {
      static_cast<void>((*store)->remove(sha256));
    }
  }

  void add_routes() {
    const auto add = [this](std::string method, std::string_view pattern, auto member) {
      router_.add(std::move(method), pattern,
                  [this, member](http::RoutedRequest request) -> net::awaitable<http::Response> {
                    return (this->*member)(std::move(request));
                  });
    };
    add("GET", "/agent/v1/facts", &Impl::get_facts);
    add("GET", "/agent/v1/server-config", &Impl::get_server_config);
    add("POST", "/agent/v1/permits", &Impl::post_permit);
    add("POST", "/agent/v1/operations", &Impl::post_operation);
    add("GET", "/agent/v1/operations/{id}", &Impl::get_operation);
    add("POST", "/agent/v1/operations/{id}/cancel", &Impl::cancel_operation);
    add("POST", "/agent/v1/operations/{id}/throttle", &Impl::throttle_operation);
    add("GET", "/agent/v1/digest", &Impl::get_digest);
    add("POST", "/agent/v1/digest/stop", &Impl::stop_digest);
    add("GET", "/agent/v1/files", &Impl::list_files);
    add("PUT", "/agent/v1/files/{sha256}", &Impl::put_file);
    add("GET", "/agent/v1/files/{sha256}", &Impl::get_file);
    add("HEAD", "/agent/v1/files/{sha256}", &Impl::get_file);
    add("DELETE", "/agent/v1/files/{sha256}", &Impl::delete_file);
    router_.no_path = [](const http::Request& request) {
      return problem(404, "not_found",
                     fmt::format("{} {}: no such route", request.method, request.target));
    };
  }

  net::awaitable<http::Response> get_facts(http::RoutedRequest request) {
    const auto below =
        number_from_text<std::int64_t>(request.target.parameter("chunksBelow").value_or("-1"));
    if (!below) {
      co_return problem(400, "bad_request", "chunksBelow must be the number of a chunk");
    }
    runner_->digests().forget_old();
    runner_->noted_texts().collect();
    if (file_store_) {
      file_store_->collect();
    }
    api::AgentFacts facts{collect_facts(environment_.inspection(), environment_.files,
                                        state_directory_, environment_.clock, *below)};
    facts.highest_controller_epoch = runner_->journal().highest_epoch();
    auto operations = runner_->overview();
    if (!operations) {
      co_return problem_of(operations.error());
    }
    facts.operations = *std::move(operations);
    if (environment_.offline != nullptr) {
      facts.service_control = environment_.offline->configured();
      facts.start_command = environment_.offline->start_text();
      facts.offline_problem = environment_.offline->wrong_user();
      if (auto kept = backup::generations_with_kept_files(environment_.files,
                                                          environment_.offline->place().database)) {
        facts.kept_restores = *std::move(kept);
      }
    }
    facts.lost_streams = runner_->lost_streams();
    facts.online_problem =
        environment_.online != nullptr
            ? environment_.online->look().problem
            : "this agent is not set up for work on the files of a running server";
    if (environment_.complete_facts) {
      environment_.complete_facts(facts);
    }
    if (environment_.offline != nullptr && environment_.inspection() == nullptr) {
      add_facts_of_stopped(*environment_.offline, facts);
    }
    co_return json_text_answer(200, api::to_text(facts));
  }

  net::awaitable<http::Response> get_server_config(http::RoutedRequest /*request*/) {
    const auto seen = co_await ServerConfigFile::look(config_, node_);
    co_return json_text_answer(200, api::to_text(seen));
  }

  void add_facts_of_stopped(const external::OfflineServer& server, api::AgentFacts& facts) {
    const auto& place = server.place();
    add_disks(environment_.files, place.database, place.index_directory(), facts);
    facts.kept_stopped_by = server.kept_stopped_by();
    const auto works = std::ranges::find_if(facts.operations, [](const auto& operation) {
      return operation.state == api::OperationState::kActing &&
             operation.kind.starts_with("offline_");  // which starts it when it ends
    });
    if (facts.kept_stopped_by.empty() && works != facts.operations.end()) {
      facts.kept_stopped_by = "operation " + works->id;
    }
  }

  net::awaitable<http::Response> post_permit(http::RoutedRequest request) {
    const auto permit = api::parse_permit(request.request.body);
    if (!permit) {
      co_return problem_of(permit.error());
    }
    if (auto raised = runner_->journal().raise_epoch(permit->controller_epoch); !raised) {
      co_return problem_of(raised.error());
    }
    runner_->superseded_by(permit->controller_epoch);
    runner_->permits().grant(*permit);
    http::Response response;
    response.status = 204;
    co_return response;
  }

  net::awaitable<http::Response> post_operation(http::RoutedRequest request) {
    const auto asked = api::parse_operation_request(request.request.body);
    if (!asked) {
      co_return problem_of(asked.error());
    }
    const auto accepted = runner_->submit(*asked);
    if (!accepted) {
      co_return problem_of(accepted.error());
    }
    co_return json_text_answer(accepted->is_new ? 202 : 200, api::to_text(accepted->record.status));
  }

  net::awaitable<http::Response> get_operation(http::RoutedRequest request) {
    co_return stored_operation(request);
  }

  http::Response stored_operation(const http::RoutedRequest& request) {
    const std::string id(request.parameter("id"));
    // A running one's newest reason is in memory only; an outcome counts once it is stored.
    if (const auto running = runner_->find_running(id);
        running != nullptr && !api::has_ended(running->status.state)) {
      runner_->touch(*running);
      return json_text_answer(200, api::to_text(runner_->status_of(*running)));
    }
    const auto found = runner_->journal().find(id);
    if (!found) {
      return problem_of(found.error());
    }
    return *found ? json_text_answer(200, api::to_text((*found)->status))
                  : problem(404, "not_found",
                            fmt::format("operation {} never arrived at this agent", id));
  }

  net::awaitable<http::Response> cancel_operation(http::RoutedRequest request) {
    const auto record = runner_->find_running(std::string(request.parameter("id")));
    if (!record) {
      co_return stored_operation(request);
    }
    const auto keep = flag(request, "keep", false);
    if (!keep) {
      co_return problem(400, "bad_request", "keep must be true or false");
    }
    if (!co_await runner_->cancel(record, *keep)) {
      co_return problem(
          409, "conflict",
          fmt::format("a {} cannot be stopped; it ends by itself", record->request.kind));
    }
    co_return json_text_answer(202, api::to_text(record->status));
  }

  net::awaitable<http::Response> throttle_operation(http::RoutedRequest request) {
    const auto throttle = api::parse_throttle(request.request.body);
    if (!throttle) {
      co_return problem_of(throttle.error());
    }
    const auto record = runner_->find_running(std::string(request.parameter("id")));
    if (!record) {
      co_return stored_operation(request);
    }
    if (!runner_->throttle(record, *throttle)) {
      co_return problem(409, "conflict",
                        fmt::format("the throttle of a {} cannot be changed while it runs",
                                    record->request.kind));
    }
    co_return json_text_answer(200, api::to_text(runner_->status_of(*record)));
  }

  /// "true" or "false"; nullopt: neither.
  static std::optional<bool> flag(const http::RoutedRequest& request, std::string_view name,
                                  bool otherwise) {
    const auto text = request.target.parameter(name);
    if (!text) {
      return otherwise;
    }
    return *text == "true" || *text == "false" ? std::optional(*text == "true") : std::nullopt;
  }

  static std::optional<std::int64_t> point_of(const http::RoutedRequest& request) {
    const auto point =
        number_from_text<std::int64_t>(request.target.parameter("point").value_or(""));
    return point && *point >= 0 ? point : std::nullopt;
  }

  net::awaitable<http::Response> get_digest(http::RoutedRequest request) {
    const auto point = point_of(request);
    const auto readable = flag(request, "readable", true);
    const auto throttle =
        number_from_text<int>(request.target.parameter("throttlePercent").value_or("100"));
    if (!point || !readable || !throttle || *throttle < 1 || *throttle > 100) {
      co_return problem(400, "bad_request",
                        "point must be the number of a scavenge point, readable true or false, "
                        "throttlePercent 1 to 100");
    }
    auto* node = environment_.inspection();
    if (node == nullptr) {
      co_return problem(503, "unavailable", "the node is stopped; a digest needs it running");
    }
    const auto answer = runner_->digests().ask(
        *node, {.point = *point, .readable = *readable, .throttle_percent = *throttle});
    if (!answer) {
      co_return problem_of(answer.error());
    }
    co_return json_text_answer(answer->digest ? 200 : 202, api::to_text(*answer));
  }

  net::awaitable<http::Response> stop_digest(http::RoutedRequest request) {
    const auto point = point_of(request);
    const auto keep = flag(request, "keep", false);
    if (!point || !keep) {
      co_return problem(400, "bad_request",
                        "point must be the number of a scavenge point, keep true or false");
    }
    runner_->digests().stop(*point, *keep);
    http::Response response;
    response.status = 204;
    co_return response;
  }

  [[nodiscard]] Path file_directory() const { return state_directory_ / "files"; }

  Result<FileStore*> file_store() {
    if (!file_store_) {
      auto opened = FileStore::open(file_directory(), {.files = environment_.files,
                                                       .clock = environment_.clock,
                                                       .log = environment_.log,
                                                       .make_private = environment_.make_private,
                                                       .in_use = [this](std::string_view sha256) {
                                                         return is_referred_to(sha256);
                                                       }});
      if (!opened) {
        environment_.log.error("the agent's file store cannot be opened",
                               {{"error", opened.error().message}});
        return opened.error();
      }
      file_store_ = *std::move(opened);
    }
    return file_store_.get();
  }

  /// By the parameters of an operation that has not ended; also where that cannot be known.
  bool is_referred_to(std::string_view sha256) {
    const auto unfinished = runner_->journal().unfinished();
    return !unfinished || std::ranges::any_of(*unfinished, [sha256](const auto& record) {
      return record.request.parameters_json.contains(sha256);
    });
  }

  /// Of the requests that change files: an older controller's are refused.
  Result<void> check_controller(const http::RoutedRequest& request) {
    const auto epoch =
        number_from_text<std::int64_t>(request.target.parameter("controllerEpoch").value_or(""));
    if (!epoch || *epoch < 0) {
      return Error{Errc::kInvalidArgument, "controllerEpoch must be the number of an epoch"};
    }
    VERGER_RETURN_IF_ERROR(runner_->journal().raise_epoch(*epoch));
    runner_->superseded_by(*epoch);
    return {};
  }

  net::awaitable<http::Response> put_file(http::RoutedRequest request) {
    const auto stored = [&]() -> Result<api::StoredFile> {
      VERGER_RETURN_IF_ERROR(check_controller(request));
      VERGER_TRY(auto* const store, file_store());
      return store->put(request.parameter("sha256"), as_bytes(request.request.body));
    }();
    co_return stored ? json_text_answer(200, api::to_text(*stored)) : problem_of(stored.error());
  }

  net::awaitable<http::Response> get_file(http::RoutedRequest request) {
    const auto found = [&]() -> Result<api::StoredFile> {
      VERGER_TRY(auto* const store, file_store());
      return store->find(request.parameter("sha256"));
    }();
    auto answer = found ? json_text_answer(200, api::to_text(*found)) : problem_of(found.error());
    if (request.request.method == "HEAD") {
      answer.body.clear();  // its signature is of what the caller gets
    }
    co_return answer;
  }

  net::awaitable<http::Response> delete_file(http::RoutedRequest request) {
    const auto removed = [&]() -> Result<void> {
      VERGER_RETURN_IF_ERROR(check_controller(request));
      VERGER_TRY(auto* const store, file_store());
      return store->remove(request.parameter("sha256"));
    }();
    co_return removed ? http::Response{.status = 204} : problem_of(removed.error());
  }

  net::awaitable<http::Response> list_files(http::RoutedRequest /*request*/) {
    const auto store = file_store();
    co_return store ? json_text_answer(200, api::to_text((*store)->list()))
                    : problem_of(store.error());
  }

  Path state_directory_;
  AgentEnvironment environment_;
  CertificateDesk::Self desk_;
  BackupCatalogue::Self catalogue_;  ///< null: it has no repositories
  std::shared_ptr<ServerConfigFile> config_;
  ScavengeEstimates::Self estimates_;
  client::NodeClient node_;
  std::shared_ptr<OperationRunner> runner_;
  std::unique_ptr<FileStore> file_store_;  ///< from its first use on
  http::Router router_;
};

Agent::Agent(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agent::~Agent() { impl_->abandon(); }

Result<std::unique_ptr<Agent>> Agent::open(AgentOptions options, AgentEnvironment environment) {
  VERGER_RETURN_IF_ERROR(
      make_directories_durably(environment.files, options.journal.parent_path()));
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
  return [weak = std::weak_ptr(impl_)](http::Request request) {
    return Impl::answer(weak, std::move(request));
  };
}

}  // namespace verger::agent
